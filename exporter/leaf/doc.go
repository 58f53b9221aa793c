// Package leaf gives jobs that have no cgroup in perf's hierarchy one there.
//
// In come a name and process ids; out comes the directory of a cgroup that holds
// those processes and what they start from then on. The package moves processes in
// perf's hierarchy only: the v1 tree of perf_event where one is mounted, else v2 on a
// hybrid host, where no controller is held by it; so nothing limits the job there. In the
// trees where the scheduler limits and counts it changes nothing. It never ends a process
// and never looks for jobs.
//
// It is off unless the administrator asks for it (--perf.leaf), since whoever
// follows processes by their v2 cgroup, as systemd does on some hybrid hosts, loses
// sight of those that were moved; in a tree of perf's own nobody follows them. What a job
// counted before it was moved is not in perf's counters.
package leaf
