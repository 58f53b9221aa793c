// Package proc adds up what /proc says about the processes of a job: CPU time,
// page faults, resident memory, threads, context switches and IO.
//
// In come the job's process ids at each reading; out come values by column. What a
// process or thread had counted when it was last seen stays counted after it is
// gone, so that counters never decrease; what it did after it was last seen is
// lost. Switches are those of the threads, since the kernel sums them nowhere. A
// parent that waits for its child takes over the child's IO in the kernel's own
// books, so that the child's is then not counted twice.
//
// The package never reads memory maps, which would stall the job, nor anything of
// a process that is not the job's.
package proc
