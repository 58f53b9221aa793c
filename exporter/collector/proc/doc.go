// Package proc adds up what /proc says about the processes of a job: CPU time, page faults,
// resident memory, threads, context switches and IO.
//
// Input: the job's process ids at each reading. Output: values by column. What a
// process counted when it was last seen stays counted after its end, so that counters never
// decrease. A parent that waits for its child takes over in the kernel's accounts what the
// child used, which is then not counted twice. What a process did after it was last seen is
// lost if no parent in the job waits for it. Switches are those of living threads: the
// kernel sums them nowhere. Memory is what each process has for itself, and the largest shared
// memory of one; what they share since a fork counts for each.
//
// While a job has the same processes, one whose stat is as before is not read further, but each
// eighth reading is whole. Of an idle job (Moment.Idle) not even stat is read; each 64th reading is
// whole.
//
// prometheus/procfs is not used here: it takes twice the time and a hundred times the memory
// for stat, io and status of a process, and there may be thousands.
//
// The package never reads memory maps, which would stall the job, and never a process that is
// not the job's.
package proc
