// Package nomad drives the batch jobs of a Nomad cluster by its HTTP API.
//
// In come job files and intents; out come registrations, signals and stops, and jobs
// as Nomad's job versions and allocations show them. What Nomad does not keep stands
// in a Journal: which request made which job, the owner's own specification of a job
// that was changed, and which step of which intent was taken. The process may die at
// any moment: the next one with the same journal goes on. Every step reads the job
// and its allocations anew.
//
// # Names
//
// A job of the namespace default has its own id as driver.JobID, one of another
// namespace ID@NAMESPACE; an id that holds an @ always has its namespace. Each
// allocation of a job is an attempt; exporters know it as ALLOCATION.TASK
// (driver.Attempt.Unit). Nomad knows no owner of a job: it is the namespace.
//
// # Seeing
//
// TRAPS.md lists what Nomad does that nobody expects, with the test that shows it or the
// reason for which it cannot matter here.
//
// The list of jobs is the truth: a blocking query that returns when any job of the
// namespace or the count of its allocations by status changes. Each registration is
// read once, to know whether it carries a stanza; after that a job without one costs
// its line in the list, and so it does for a controller that is started again. A
// namespace that the token may not list, and a job that it may not read, hide no other. Between two lists passes a millisecond for each job in them, at
// least 50 ms and at most five seconds. Get, List, Logs and Outlook answer from what was
// read while the list says that nothing happened to the job since; Advance, Check,
// Listen and Stop read anew.
//
// The event stream is not used. It ends without a word in a burst, begins silently at
// the oldest event that is held, and would wake no sooner than the list does. So its
// gaps cannot matter. The client of Nomad's API takes what it can of a list: an answer
// that breaks is asked for again from the beginning, and compared with the last.
//
// A job is listed where it carries a stanza (in a group's scaling policy, or in the meta
// of the job, a group or a task) or where it was made or changed here. Jobs that Nomad
// would run again in part (count, several groups), cannot change (dispatched ones) or
// that are no batch jobs of one main task of raw_exec, exec or docker are listed, and
// Check and Advance say why they are not changed; package spec has the reasons.
//
// # Starting
//
// Start registers a job under an id of its own, the name in its file and a hash of the
// request, with compare-and-set on its absence: repeated it is the same job, and it
// touches no other. Its command is wrapped so that finished work is not done again
// (package mark). A job that is to wait (Spec.NotBefore) is registered with a schedule of
// one second: Nomad starts it by itself as the job's child, and the controller may die.
// The schedule is taken away when the child is seen. A change of the waiting job moves
// the second to two seconds from now; where the servers take it later than that, it is
// set again by whoever looks next. Submit registers a job as its user under the file's
// own id, and never over a job that lives.
//
// # Moving
//
//	read the job and its allocations
//	dry run                        refuse what has no room or touches another allocation
//	signal the allocation          its events tell whether that was done already
//	wait until it saved            a line of its output, or its exit status
//	dry run again, register        compare-and-set on the job's index
//	verify                         until the attempt before is over
//
// A dry run comes before the signal and before the registration. The registration
// leaves a mark in the group's scaling policy and a variable in the task's environment:
// the mark tells whose a version is, and the variable makes every change destructive.
// A version that has no mark, or one that was not expected, is its owner's word: a plain
// run of the same file takes the change back, another file is what he asks for now.
// Either supersedes an intent. Spec is always changed from the owner's, which is kept
// here, as Nomad remembers six versions and the source of no more.
//
// Compare-and-set does not see completion. So the attempt before is looked at until it
// is over: where it had done its work, what runs again is stopped at once, the job has
// succeeded and the intent has come too late (driver.StepFinished). Whoever looks does
// that, Advance or the driver by itself, which looks when the list changes.
//
// A registration that has no room is undone while the attempt before runs, and where it
// asks for more than the attempt before had. Otherwise the next attempt is queued.
//
// A job that leaves with the checkpoint's status has failed for Nomad, whose restart
// policy runs it again after a delay, in the same allocation and under the old
// settings: it is changed before. Where that delay is over first, the move is abandoned.
// A job whose policies are off and that saves too late is registered again, with its
// settings. So a restart delay of several seconds, which is Nomad's default, lets a job
// go on where no controller is there.
//
// A running allocation is not touched without a checkpoint, and one that is about to
// begin is waited for. Nothing is signalled where the token may not register: that is
// asked first, since a job that has saved and left could not be started again. A job with
// settings that this program does not know, as a newer Nomad may have, is not changed,
// since a registration would drop them.
//
// An owner who registers his file again with -preserve-resources keeps the resources of a
// change, which stay ours to take back.
//
// # Several controllers
//
// Config.Leads is asked before anything is changed in Nomad. One that stands by looks and
// answers; Recall reads what the one before noted.
//
// # Memory
//
// An allocation that was killed for memory under a change (package view says how that is
// known) has its owner's memory registered at once, and then all of its owner's settings.
//
// # What is left out
//
// A revert is not used: it needs a capability of its own, and the owner's specification
// is registered instead. Tags, forced evaluations and scaling events are not used either.
//
// A job that returns is changed before its start where it waits for room, or was made by
// Start with a time to begin at. Nomad starts others at once and has no way to keep a
// batch job for a moment that ends by itself and keeps the job's id.
//
// Short probe jobs before the registration of a job that cannot be moved are not made:
// only its author knows how to make its work short, and that it does no harm twice. Start
// makes any job that somebody asks for, under an id of its own. A job without a checkpoint
// is profiled and advised, and changed at its next submission.
//
// A change of the environment alone is a registration, too. Where its author has a
// template render Nomad variables, a write to them restarts the task in place: that is
// seen and the same attempt, but nothing is written here.
//
// Time limits need a Nomad that knows max_run_duration.
//
// The package reads no file, logs no token, and never runs again what has done its work.
package nomad
