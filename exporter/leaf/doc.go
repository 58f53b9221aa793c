// Package leaf gives jobs that have no cgroup in perf's hierarchy one there.
//
// In come a name and process ids; out comes the directory of a cgroup that holds
// those processes and what they start from then on. The package moves processes in
// the v2 hierarchy of a hybrid host only, where no controller is held by it, so that
// nothing limits the job there; in the v1 trees, where the scheduler limits and
// counts, it changes nothing. It never ends a process and never looks for jobs.
//
// It is off unless the administrator asks for it (--perf.leaf), since whoever
// follows processes by their v2 cgroup, as systemd does on some hybrid hosts, loses
// sight of those that were moved. What a job counted before it was moved is not in
// perf's counters.
package leaf
