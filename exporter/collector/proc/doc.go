// Package proc adds up what /proc says about the processes of a job: CPU time,
// page faults, resident memory, threads, context switches and IO.
//
// In come the job's process ids at each reading; out come values by column. What a
// process or thread had counted when it was last seen stays counted after it is
// gone, so that counters never decrease. A parent that waits for its child takes over
// in the kernel's own books what the child used, with what that did after it was last
// seen and although no reading ever saw it; it is then not counted twice. What is lost
// is what a process did after it was last seen for which nobody in the job waits.
// Switches are those of the threads that live, since the kernel sums them nowhere.
//
// A thread that did not get a CPU since it was read, by its schedstat, counts what it
// counted then and is not read again, nor is any process of a job of which nothing ran
// (Moment.Idle); each eighth reading looks at the books of all, for what others do to those
// that sleep, and each 64th at everything.
//
// The package never reads memory maps, which would stall the job, nor anything of
// a process that is not the job's.
package proc
