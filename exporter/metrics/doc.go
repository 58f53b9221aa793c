// Package metrics shows the exporter's store and node to Prometheus.
//
// The input is the newest value of each column of each job and the sampler's last snapshot;
// the output is a page in base units, each user's with their own jobs. A scrape never reads a
// host file: the first one after a sample makes the page, the others are served from memory.
//
// No label is called job, which is Prometheus's own; only a job's info series has the labels
// user and cgroup, so that the other series stay few. There are at most as many series as
// columns times the attempts that the store holds.
//
// The page exporter/metrics.md is generated from Table and Elsewhere.
package metrics
