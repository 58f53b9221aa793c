// Package supervise is the small process next to each attempt of a job: it starts
// the job in its cgroup, waits, and writes down how it ended, whatever happens to
// the scheduler meanwhile.
//
// Input: the files of one attempt's directory: plan.json (what to run), and while
// it runs signal.json (ask the job to save) and stop.json (end it). Output:
// started.json, process.json and exit.json, each whole and durable. The lock on
// the directory says whether the supervisor lives:
//
//	lock held                          starting or running
//	lock free, exit.json               ended
//	lock free, started.json, no exit   the supervisor died: unknown
//	lock free, neither                 never started; whoever takes the lock may
//	                                   write `void`, after which no one starts it
//
// The process that finds the lock free and neither void nor started.json starts the
// attempt, so it starts at most once.
//
// The supervisor is the program's own binary, executed again in its own session; the
// job is first a stage of the same binary, which waits until it is in its cgroups,
// becomes the job's user, and then executes the job. The listener waits for its
// cgroups too, in a shell. The supervisor never decides what the end of an attempt
// means for the job, never starts anything a second time, and never ends by a polite
// signal: only with its job.
package supervise
