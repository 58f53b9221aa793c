// Package collector is the contract between the sampler and the sources of
// counters; each source is a package of its own below it, and main lists them.
//
// In come a job's cgroup directories, CPUs and processes; out come values by the
// column names of exporter/api, and for each source one of three answers:
// supported, unsupported, or denied, with the reason. A collector never keeps a
// goroutine, never writes to the host, and leaves out what it cannot read: missing
// is not zero.
//
// A reader that is also Selective says which events of a choice it counts for its job.
// A reader that is also a Follower stays open, and goes on counting, when the job's
// cgroups or CPUs change; the others are opened anew.
//
// A reader that is also Placed knows on which package its job worked.
//
// Collectors and readers are used by one goroutine at a time, by the sampler's leave. Any of
// their calls may hang in the kernel, so that whoever calls goes on without it (Ask).
package collector
