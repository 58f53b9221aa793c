// Package perf counts kernel, hardware and cache events of a job's cgroup.
//
// Input: the job's cgroup in perf's hierarchy, its CPUs, and the events that the administrator
// chose (Select). Output: values by column. Five software events are always counted. Events are
// opened on the cgroup, per CPU, so threads, forks and processes of any lifetime are counted
// once. The package never samples, and never reads addresses or data of a job.
//
// Events count together or not at all in groups. The probe learns how many fit the PMU: a
// group grows until the kernel refuses it or never lets it run (a watchdog has a counter).
// The kernel rotates several groups, and each is scaled by its enabled over running time, per
// CPU and reading. Time for which a group did not run is scaled in with the next time that it
// ran; until then its columns are NaN, so counters never go down and never show a zero
// for what was not seen.
//
// A group of further events that cannot be opened on each CPU of a job is not counted
// for that job, and the reader says why (collector.Selective).
//
// Groups are opened by x/sys/unix. hodgesds/perf-utils hides the kernel's error number, which
// tells denied from unsupported, excludes the hypervisor, which the power, msr and uncore
// PMUs refuse, ignores short reads, which show an offline CPU, and keeps its buffers in a
// global. It numbers the tracepoints.
//
// Cgroups gives jobs of v1 hosts a cgroup where perf looks, on request.
package perf
