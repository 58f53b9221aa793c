// Package perf counts kernel, hardware and cache events of a job's cgroup, with the
// times for which they were enabled and really counted; and the joules of RAPL through
// the kernel's power PMU.
//
// In come the job's cgroup in perf's hierarchy, its CPUs, and the events that the
// administrator chose (Select: presets, names of perf list, events of PMUs and
// tracepoints); out come values by column. The five software events of the preset
// "software" are always counted. The events are opened on the cgroup, per CPU, so that
// threads, forks and processes of any lifetime are counted once; attaching to processes
// misses threads that exist and counts forked children twice. Nothing is sampled, no
// addresses and no data of the job are read.
//
// Events count together or not at all in groups. How many of them fit the PMU is
// learned when the node is probed: a group grows until the kernel refuses it, or opens
// it and never lets it run (a watchdog has a counter). Where there are several groups
// the kernel rotates them, and each is scaled by its own enabled over running time, per
// CPU and reading. Time for which a group was enabled and did not run is not dropped:
// it is scaled in with the next time that it ran, and until then the columns are NaN,
// which is missing. So counters never go down and a group that never runs never shows a
// zero for what it has not seen.
//
// When the job's CPUs change the reader follows: it opens events on the new ones and
// lets go of the others after one more reading, and the counters go on. A CPU that goes
// offline is read out, and opened again when it is back. A group of further events that
// cannot be opened on each CPU of a job is not counted for that job at all, and the
// reader says why (collector.Selective); the others go on.
//
// Groups are opened by x/sys/unix, since hodgesds/perf-utils hides the kernel's error
// number, by which denied is told from unsupported, excludes the hypervisor, which
// power, msr and uncore PMUs refuse, ignores short reads, by which a CPU that went is
// known, and keeps its buffers in a global. It serves where it is right: for the
// numbers of tracepoints.
//
// Learning the groups takes a few milliseconds for each, once. The package keeps no
// goroutine. Hybrid CPUs are counted on the cores that the kernel's generic events
// mean; groups that those of the other kind refuse are absent with that reason.
package perf
