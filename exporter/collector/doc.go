// Package collector is the contract between the sampler and the sources of counters; each
// source is a package below it, and main lists them.
//
// Input: a job's cgroups, CPUs and processes. Output: values by the column names of exporter/api,
// and for each source one of three answers: supported, unsupported, or denied, with the
// reason. A collector never keeps a goroutine, never writes to the host, and leaves out what
// it cannot read: missing is not zero.
//
// Collectors and readers belong to one goroutine at a time. Any of their calls may hang in
// the kernel, so a Worker makes each of them.
package collector
