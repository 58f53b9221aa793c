// Package prometheus runs a real Prometheus against the exporter with the rules that
// ship: a real job under the real controller overruns its budget on a simulated powercap
// tree, an alert tells so, outlasts a restart of the exporter, and ends with the job.
//
// It holds only tests. scripts/setup-test fetches Debian's Prometheus; without it
// they are skipped.
package prometheus
