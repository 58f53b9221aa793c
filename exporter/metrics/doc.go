// Package metrics shows the exporter's store and node to Prometheus.
//
// In come the newest values and the sampler's last snapshot; out go metrics in base
// units. A scrape reads no host file: it shows what the timer saw. No label is
// called job, which is Prometheus's own; user and cgroup are on the one info series
// of a job, so that the others stay few.
//
// The page exporter/metrics.md is generated from Table.
package metrics
