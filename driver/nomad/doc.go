// Package nomad drives the batch jobs of a Nomad cluster by its HTTP API.
//
// Input: job files and intents. Output: registrations, signals and stops, and jobs
// as Nomad's job versions and allocations show them. A Journal has what Nomad does not
// keep: which request made which job, the owner's own specification of a job that was
// changed, and which step of which intent was taken. The process may die at any moment:
// the next one with the same journal goes on. The package reads no file, logs no token, and
// never runs again what has done its work. TRAPS.md lists what Nomad does that one would not
// expect, with the test that shows it.
//
// # Names
//
// A job of the namespace default has its own id as driver.JobID, one of another
// namespace ID@NAMESPACE; an id that holds an @ always has its namespace. Each
// allocation of a job is an attempt, and each restart in place with other variables;
// exporters know both as ALLOCATION.TASK (driver.Attempt.Unit). Nomad knows no owner of
// a job: it is the namespace.
//
// # Seeing
//
// The list of jobs is the truth: a blocking query that returns when any job of the
// namespace or the count of its allocations by status changes. The informer compares each
// list with the last. Get, List, Logs and Outlook answer from a snapshot while the list says
// that nothing happened to the job since. Advance, Check, Listen and Stop read again. Each
// registration is read once by a controller, to know whether it carries a stanza. A job that
// cannot be read hides no other. The event stream is not used: it ends without a word in a
// burst, and would wake no sooner than the list does.
//
// A job is listed where it carries a stanza (in a group's scaling policy, or in the meta
// of the job, a group or a task) or where it was made or changed here. Package spec has the
// reasons why a job is only observed.
//
// # Starting
//
// Nomad starts a job at once and cannot hold one. Submit registers a job as its user, under
// the file's own id, and never over a job that lives. It may ask what the job is to begin with
// (Submission.Ask), just before the one registration. The registration then has the change, and
// in its mark what the owner wrote in place of it: no journal is needed to know what is whose.
// Foresee is the job that a registration would make, and MayBegin the dry run. Start registers a
// job under its own id, with compare-and-set on its absence: repeated it is the same job. The
// commands of both are wrapped so that finished work is not done again (package once).
//
// # Moving
//
//	read the job and its allocations
//	dry run                        refuse what has no room or touches another allocation
//	signal the allocation          its events say whether that was done already
//	wait until it saved            a line of its output, or its exit status
//	dry run again, register        compare-and-set on the job's index
//	verify                         until the attempt before is over
//
// The registration leaves a mark in the group's scaling policy and a variable in the task's
// environment: the mark says whose a version is, and the variable makes every change
// destructive. A version that has no mark, or one that was not expected, is its owner's
// word, and supersedes an intent. If he brings back a version with a change of ours, by a
// revert, a stop and a start, or -preserve-resources, that change stays ours to take back. A
// change always starts from the owner's own specification, which is kept here, since Nomad
// remembers six versions and the source of no more.
//
// Compare-and-set does not see completion. So the attempt before is looked at until it
// is over: where it had done its work, what runs again is stopped at once, the job has
// succeeded and the intent has come too late (driver.StepFinished). Advance does that, or the
// driver by itself when the list changes.
//
// An intent with Discard begins at the second dry run, once the client of the node answers
// and has not just come back: nothing else says then that the attempt still runs. Nomad ends
// the attempt by its kill_signal, which may be the request to save, and waits for its
// kill_timeout; so the attempt is sent SIGKILL as soon as its events say that it is being
// ended, and not before, when that would look like a kill for memory.
//
// A registration that has no room is undone while the attempt before runs, and where it
// asks for more than the attempt before had. Otherwise the next attempt is queued. A job
// that waits for room and would have to wait for more is not registered at all
// (driver.StepNoRoom): Nomad fills no gaps in an order, so that smaller jobs could keep it
// waiting for ever.
//
// A job that leaves with the checkpoint's status has failed for Nomad, whose restart
// policy runs it again after a delay, in the same allocation and under the old settings. It must
// be changed before the delay is over, else the move is abandoned. A job whose policies are off
// and that saves too late is registered again, with its settings.
//
// Nothing is signalled where the token may not register: a job that has saved and left could
// not be started again. A job with settings that this program does not know, as a newer Nomad
// may have, is not changed, since a registration would drop them.
//
// # In place
//
// A change of the environment alone needs no registration where the job's author put
// spec.Template into its main task, with env = true and change_mode = "restart". The variable
// of the task is written instead, with compare-and-set on its index, and the template
// restarts the task in the same allocation: another attempt of the same Unit. The items name
// the allocation that they are for, so that no other has them. Nomad's client makes up an
// environment a moment before it says that the task has started, and drops the restart for a
// template that is rendered just then; so a start that may be such a one is followed by a
// restart from here. A template that is not rendered in time has its variable taken back. The
// variable is removed when the job has ended. A change is registered with a token without rights
// to the variables nomad/jobs/*/*/*, and also if it takes a registered variable back or has
// values that need quotes. What its owner writes into the variable stays.
//
// # Advice
//
// A job without a stanza that waits may have its priority lowered, which orders Nomad's queue
// (Driver.Advise); the journal has its owner's. Once it runs it keeps the lower one, since Nomad
// runs again what ends just before a registration: with preemption, jobs of its owner's priority
// may take its place. It may also get an affinity for a class of nodes, where its owner has none:
// Nomad weighs that against how full nodes are, and the job never waits for such a node.
//
// # Several controllers
//
// Config.Leads is asked before anything is changed in Nomad. A standby looks and answers; Recall
// reads what the leader before noted.
//
// # Memory
//
// An allocation that was killed for memory under a change (package view says how that is
// known) has its owner's memory registered at once, and then all of its owner's settings.
package nomad
