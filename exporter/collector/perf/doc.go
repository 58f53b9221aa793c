// Package perf counts kernel software events of a job's cgroup: task clock, context
// switches, migrations and page faults, with the times for which the events were
// enabled and really counted.
//
// In come the job's cgroup in perf's hierarchy and its CPUs; out come values by
// column. The events are opened on the cgroup, one group per CPU, so that threads,
// forks and processes of any lifetime are counted once; attaching to processes
// misses threads that exist and counts forked children twice. Nothing is sampled,
// no addresses and no data of the job are read.
//
// When the job's CPUs change the reader follows: it opens events on the new ones and
// lets go of the others after one more reading, and the counters go on.
//
// Groups are opened, read and closed through hodgesds/perf-utils, which takes a
// cgroup's descriptor and flags. Its errors hide the error number, so that a probe
// and a failed open ask the kernel themselves (probe.go) to tell denied from
// unsupported.
package perf
