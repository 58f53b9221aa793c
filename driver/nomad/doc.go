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
// allocation of a job is an attempt, and each restart in place with other variables;
// exporters know both as ALLOCATION.TASK (driver.Attempt.Unit). Nomad knows no owner of a job: it is the namespace.
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
// namespace that the token may not list, and a job that it may not read, hide no other; one that
// Nomad does not answer for, or for longer than 20 s, is listed as it was last read. Between two lists passes a millisecond for each job in them, at
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
// (package once). A job that is to wait (Spec.NotBefore) is registered with a schedule of
// one second: Nomad starts it by itself as the job's child, and the controller may die.
// The schedule is taken away when the child is seen. A change of the waiting job moves
// the second to two seconds from now; where the servers take it later than that, or their
// clock is another, it is set again by whoever looks next, twice as far away each time; one that Nomad has begun and forgotten, as it does
// some hours after the end, is not begun again. Submit registers a job as its user under
// the file's own id, and never over a job that lives.
//
// Nomad starts a job at once. So a user who submits may ask with what it is to begin
// (Submission.Ask), just before the one registration. That has the change then, and in its
// mark what the owner wrote where the change stands: whoever sees the job knows what is
// the owner's, what is not, and of which intent, without a journal. It is the owner's own
// registration in all else. Where he registers other settings over the change, the mark
// says nothing any more. Foresee is the job that a registration would make, for whoever
// decides, and MayBegin the dry run: what would have to wait for room is not begun with.
// Of a question that comes to nothing nothing is left.
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
// A dry run comes before the signal and before the registration. Of the jobs of a node one
// at a time is moved to more than it has: what it is to have is nobody's until it is
// registered. The registration
// leaves a mark in the group's scaling policy and a variable in the task's environment:
// the mark tells whose a version is, and the variable makes every change destructive.
// A version that has no mark, or one that was not expected, is its owner's word: a plain
// run of the same file takes the change back, another file is what he asks for now. A
// version with a change of ours that he brought back, by a revert or a stop and a start,
// leaves that ours to take back. Each supersedes an intent. Spec is always changed from the owner's, which is kept
// here, as Nomad remembers six versions and the source of no more.
//
// Compare-and-set does not see completion. So the attempt before is looked at until it
// is over: where it had done its work, what runs again is stopped at once, the job has
// succeeded and the intent has come too late (driver.StepFinished). Whoever looks does
// that, Advance or the driver by itself, which looks when the list changes.
//
// An intent with Discard begins at the second dry run, once the client of the node answers
// and has not just come back: nothing else says then that the attempt still runs. The
// change is always registered, not written to a variable: a template takes its time. Nomad ends
// the attempt by its kill_signal, which may be the request to save, and waits for its
// kill_timeout; so the attempt is sent SIGKILL as soon as its events say that it is being
// ended, and not before, when that would look like a kill for memory. An attempt that ended
// with 0 before the registration has done its work, as above. One that ends so while it is
// being ended has done it where its mark says so, and is else begun again from its checkpoint.
//
// A registration that has no room is undone while the attempt before runs, and where it
// asks for more than the attempt before had. Otherwise the next attempt is queued. A job
// that waits for room and would have to wait for more is not registered at all
// (driver.StepNoRoom): Nomad fills no gaps in an order, so that smaller jobs could keep it
// waiting for ever.
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
// Records of jobs that ended and that Nomad has forgotten are kept for 30 days, and with
// them what is known of their requests.
//
// # In place
//
// A change of the environment alone needs no registration where the job's author put this
// template into its main task (spec.Template; blanks around lines do not count, wait and
// splay are his):
//
//	template {
//	  data        = <<EOT
//	{{ $path := printf "nomad/jobs/%s/%s/%s" (or (env "NOMAD_JOB_PARENT_ID") (env "NOMAD_JOB_ID")) (env "NOMAD_GROUP_NAME") (env "NOMAD_TASK_NAME") }}
//	{{ if nomadVarExists $path }}{{ with nomadVar $path }}{{ if eq (print .PITCHPIPE_ALLOC) (env "NOMAD_ALLOC_ID") }}
//	{{ range .Tuples }}
//	{{ .K }}={{ .V }}
//	{{ end }}
//	{{ end }}{{ end }}{{ end }}
//	EOT
//	  destination = "local/tuned.env"
//	  env         = true
//	  change_mode = "restart"
//	}
//
// It counts by its content alone, below local/, in a job whose command is wrapped so that
// finished work is not done again, whose id Nomad takes in a path, and that is no child of a
// periodic job. Values that a file of variables would need quotes for, and changes that take
// a registered variable back, are registered as ever.
//
//	signal, wait until it saved    as above
//	write the variable             compare-and-set on its index
//	see the task begin anew        by the rendered file and the task's events
//
// The items name the allocation that they are for, so that no other has them: one that
// replaces it has what is registered. The task is restarted in the same allocation; that is
// another attempt of the same Unit. It begins with the first start that certainly has the
// variables, and the one before ends with the end of the run before that, both by the node's
// clock: whoever measures tells them apart by these times. Nomad's client makes up an
// environment a moment before it says that the task has started, and drops the restart for a
// template that is rendered just then; so a start that may be such a one is followed by a
// restart from here. A job that saves by leaving needs a restart policy that lets it, with a
// delay of some seconds; where its allocation is over, the change is registered.
//
// What its owner writes into the variable for an allocation is his word: another attempt,
// which is not changed any more. A template that is not rendered in time has its variable
// taken back. The variable is removed when the job has ended. A token without rights to the
// variables nomad/jobs/*/*/* has the change registered.
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
// Start with a time to begin at, and begins with a change where it was submitted with
// one. Others, such as those of a plain "nomad job run", Nomad starts at once, and it has no
// way to keep a batch job for a moment that ends by itself and keeps the job's id.
//
// Short probe jobs before the registration of a job that cannot be moved are not made by
// the driver: only its author knows how to make its work short, and that it does no harm
// twice. Start makes any job that somebody asks for, under an id of its own, and package
// controller/probe asks. A job without a checkpoint is profiled and advised, and changed at
// its next submission.
//
// Time limits need a Nomad that knows max_run_duration.
//
// The package reads no file, logs no token, and never runs again what has done its work.
package nomad
