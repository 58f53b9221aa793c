// Package metrics shows the exporter's store and node to Prometheus.
//
// In come the newest values and the sampler's last snapshot; out goes a page in base
// units. It is encoded when it is first asked for after a sample and served from memory
// until the next one, to each user with his own jobs alone. A scrape reads no host file:
// it shows what the timer saw. No label is called job, which is Prometheus's own; user
// and cgroup are on the one info series of a job, so that the others stay few. There are
// at most as many series as columns times the attempts that the store holds.
//
// The page exporter/metrics.md is generated from Table and Elsewhere.
package metrics
