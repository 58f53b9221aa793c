// Package slurm drives the jobs of a Slurm cluster by Slurm's own commands: those of
// one user with that user's rights, where nothing is installed but this binary, or
// everybody's (Config.Everyone) by the hand of a broker.
//
// Input: job files and intents. Output: sbatch, scancel and scontrol, jobs as
// squeue and scontrol show them, and a journal of what Slurm does not keep: which
// request made which job, what its owner asked for before it was changed, and
// which step of which intent was taken. The process may die at any moment: the
// next one on the same directory goes on. Every step reads the job anew, and what the
// cluster's configuration says is read where it is needed.
//
// TRAPS.md lists what Slurm does that nobody expects, with the test that shows it or the
// reason why it cannot matter.
//
// # Seeing
//
// One compact squeue every Config.Interval is the truth; scontrol is asked about
// jobs whose line is new or changed. A job that slurmctld has forgotten (MinJobAge
// after its end) comes from the journal, else from sacct where there is
// accounting. A record that cannot be read strictly is an error, never a guess.
//
// A job on record that nobody remembers has ended, and how is not known. Where an
// intent of ours was in progress when it was last seen it is driver.Lost. Else it is
// driver.Cancelled with the exit status -1 and a detail that says so: it counts
// neither as a success nor as a failure, and does not pause the tuner.
//
// In a long queue squeue is dear: at 10,000 jobs it took 50 ms of CPU here and 35 ms
// of slurmctld's, and scontrol for all jobs five times as much, where sdiag, or
// scontrol for one job, took 3 ms and hardly anything of slurmctld's. So the whole
// queue is looked at only as often as a hundredth of a core allows, at the earliest
// after Config.Interval and, up to 10,000 jobs, at the latest after ten seconds.
// Between two looks sdiag tells, twice in an interval, whether slurmctld counted
// anything. Where it counted submissions, the jobs of the next numbers are read, and where
// one of those is not a new job `scontrol show config` says which number comes next: that
// is how a new job is seen in time. A burst of them waits for the next look. A file that the
// site's hooks touch (Config.Wake) makes that look as soon as the last is paid for.
//
// While a watch runs, Get and List answer from what it saw, which is as old as an
// event would be late: except for jobs to which something was done here since, for
// those that an intent is about, and while processes are being ended. Advance,
// Check, Outlook and Listen always read anew. What squeue does not print of a job,
// such as its comment, is read anew every ten minutes. With Config.Marked a job
// without the mark is read once and remembered by its number: it makes no event.
//
// Where a slurmrestd of this user runs (Config.Rest) it is asked in place of sdiag, over
// a connection that stays open: a question took it 2 ms of CPU, where sdiag took 3.6 ms and
// a process was started for it. Where it does not answer, sdiag is asked. Its jobs are not asked
// for: the 304 to GET jobs?update_time costs little (19 ms at 10,000 jobs), but is given
// only while no job at all has changed, and the scheduler changes some at each look at
// its queue; the other answer is every job as JSON, which took it 3 s.
//
// # Starting
//
// A request id is claimed on disk before sbatch is called, and its job carries a
// marker of it in its comment, behind the script's own. Where it is not known
// whether an sbatch had its effect, the marker is looked for during Config.Quiet
// before another is submitted. Where slurmctld may have forgotten the job by then
// (MinJobAge), or does not say for how long it remembers, none is submitted again:
// a person must look. So it is where a job without any marker has the name and the
// script of the request and was submitted since: its owner may have edited the
// comment. Spec.NotBefore is sbatch --begin: the wait ends by itself. A
// script that names its own --begin keeps it. A wait that Start made and that is over
// is ended by whoever asks for the job next, since slurmctld itself looks at it again
// only at its next full pass.
//
// A job that names clusters is refused. Where sbatch says that it went to another cluster
// than this one, as it may where clusters are federated, its request is never submitted
// again, and what becomes of it is driver.ErrUnknown. What a user answers himself, in his
// script or in a variable of sbatch, is not answered for him by an option.
//
// # Moving
//
//	signal the job                       scancel --full --signal
//	wait until it saved
//	put it back into the queue           scontrol requeue Incomplete
//	change it while it waits             scontrol update NumCPUs CpusPerTask MinCPUsNode MinMemoryNode TimeLimit
//	end its wait                         scontrol update StartTime=now
//
// The job keeps its number, its dependants, its account and sbatch --wait. It is
// requeued, not requeued and held: Slurm then starts it by itself two minutes
// later, so that a controller that dies between two steps leaves nothing held, and
// a hold that is seen is its owner's. Incomplete makes the requeue nothing to a
// job that has ended: a finished job is never made to run again, since its
// dependants and sbatch --wait have been told.
//
// A job that runs is asked to save for more cores or memory only where it would be placed at
// once: a node has that free (sinfo) beside what it has itself, and nobody waits for room
// there; else the intent is driver.ErrNoRoom. What jobs will have of their nodes that are
// being moved counts as taken, from the first step until the next attempt is seen to run.
// Somebody else may take the room meanwhile; then the job waits as any other.
//
// At least two seconds pass between the end of an attempt and the start of the
// next: a node refuses what was launched in the second of the revocation before it
// ("Job credential revoked"), and such a job has failed.
//
// For the reason of Incomplete a job must not leave before it is requeued. One that prints a
// line when it saved and goes on (Checkpoint.Done) can be moved on every cluster.
// One that leaves with a status can be moved only where the cluster's RequeueExit
// or RequeueExitHold names the status; elsewhere it has failed by leaving, and the
// intent is refused before the signal. A job that calls `scontrol requeue` for
// itself after the signal has saved, too.
//
// A kill for memory under a change ends the job for Slurm, and it runs again: with its
// owner's memory where it had less, else under all of its owner's settings. What is to come
// is durable first; then whoever looks at the job has it put back (scontrol requeue, without
// Incomplete), which slurmctld takes while it remembers the job (MinJobAge), and the rest is
// the way of any move. Until then the job is driver.Stopped here. Dependants and sbatch
// --wait are told of the kill, though, so that memory is lowered only where the owner allows
// restarts and no job depends on it when it is changed. A broker has a verb of its own for
// it, which also gives the memory back, and takes it only where it had lowered that.
//
// An intent with Discard begins at the requeue. Slurm sends the batch shell and the
// steps SIGTERM, and kills KillWait later what is left; how the attempt exits after the
// requeue counts for nothing, and one that ended before it has ended. A broker has a verb
// of its own for it, and takes it only for an attempt that was changed through it.
//
// A job that leaves with such a status has ended for a moment, until its node has
// cleared up: an sbatch --wait that looks just then returns the status. One that prints
// a line and works on may come to its end before slurmctld gets the requeue and after
// its node knew: for Slurm, its dependants and sbatch --wait it then ends once, and
// what it did since it saved is done again. One that prints the line and then waits to
// be ended, and goes on where nobody comes, has neither moment.
//
// # What slurmctld forgets
//
// A slurmctld that is killed forgets what it acknowledged in its last seconds. A job
// that is seen held by the cluster again for having saved is let go again. An attempt
// whose start is forgotten is waited for again. A size that is forgotten is given
// again where slurmctld was started since it was given; else it was the owner who took
// it back. A size that an attempt has had by our word is never taken for his.
//
// # Everybody's jobs
//
// With Config.Everyone the process is an ordinary account without any right over
// others' jobs: it reads what every user may read, and what changes a job or reads
// its script goes through Config.Actor, which judges for itself (package broker).
// Their users submit the jobs. Their output is theirs: that a job saved is told by
// the listener inside it (Config.Saves), which the site's TaskProlog starts.
// A site that hides jobs from other users (PrivateData) hides them from this account.
//
// # Arrays
//
// An array is not a job here: each of its tasks is, with the id ARRAY_TASK from its
// submission to its end, and its own attempts and record. Start of an array returns
// its first task; all of them have the request. Of the tasks of one array that wait
// parse.MaxTasks are seen; the others follow as those begin.
//
// Slurm keeps the tasks that wait in one record, under the number of the array, and
// gives a task a number of its own when it starts or is changed; the last keeps the
// array's. That number is driver.Job.Alias: cgroups, exporters and the TaskProlog
// know the task by it. So a task that waits is always named by ARRAY_TASK, never by
// its number, which may be everybody's; and where its next attempt gets settings by
// a file, it is given its number first, by an update that has it wait for the window,
// or where its owner has it begin later by one that changes nothing. So it is for a site's
// broker, too, which takes the same names.
//
// squeue is asked for tasks one by one (-r): else it prints those that wait in one
// line with the size of one, whatever the others have. scontrol cuts a long set of
// tasks short unless SLURM_BITSTR_LEN is 0. The script of an array has the array's number
// and is found by each of its tasks' names; each record has the AdminComment.
//
// While other tasks of an array wait, slurmctld answers a signal to one that runs
// with "try again later" although it has delivered it, and scancel sends it every five
// seconds, for 45 s. The signal to a task is therefore cut off before the second
// (slurmctl.Commands).
//
// A task that is moved leaves its turn to another where only some may run at a time
// (%N), and waits for one: the array loses nothing by that, and Outlook does not tell
// when it comes. A task that is cancelled before it has a number leaves no trace.
//
// # What is observed only
//
// Heterogeneous jobs, jobs of several nodes or tasks, jobs with a deadline, and
// allocations without a script are listed; Check and Advance say why they are not changed.
//
// # A queue of unknown length
//
// Outlook looks at who waits in any partition over the job's node, at that node, at its
// partition and at reservations. Where none of them would take the job's room it waits for nothing,
// else sbatch --test-only is asked. Where that cannot be told all that the job
// wants (devices, features, licences, nodes), or jobs of the same account, QOS or user wait
// for a limit, nobody knows, and Outlook says so: nothing is restarted.
//
// # Attempts
//
// Slurm counts restarts, whoever made them. An attempt has the settings of an
// intent only if it runs in the size that the intent gave it: an update that a
// crash of slurmctld undid is seen there, and the attempt has cause CauseRequeue.
// Of attempts that nobody saw, start and end are unknown. A restart of a job that was
// cancelled before its processes had gone is counted by Slurm and was never an attempt.
//
// While no intent is in progress, cores and memory of a waiting job and a time limit
// that change are the owner's or the site's word: later intents start from them. What
// he changes while an attempt that an intent set up still waits is his as well; the
// rest of the intent's change stays, the intent counts as applied, and the attempt is
// not credited with it.
//
// # Environment
//
// A requeued job keeps its environment. Where the site runs the shipped
// TaskProlog, Change.Env goes to Config.SettingsDir/NUMBER, lines KEY=VALUE, and
// Change.Live to NUMBER.json beside it, which the job's user alone can read where their
// filesystem has access lists; Start marks jobs that have a stanza. A
// job that was not submitted here gets neither, unless the site marks it, or who submitted
// it says in its comment that he did (slurmctl.Marked): Slurm shows nobody a job's environment.
// A script whose --export keeps the variables of sbatch from the job keeps its mark from it. The
// Note of an intent stands in the first line of that file, and the TaskProlog prints it
// into the output of a marked job; elsewhere it is said nowhere, since the output is
// the job's own.
//
// # An owner's no
//
// A job whose comment has the word slurmctl.Off is driver.Job.Off: so Submit marks one that its
// user wants untuned (Spec.Off), and there is no moment in which it could be changed.
//
// The package never acts for another user by itself, never touches priority, never
// holds a job, and opens no file but its own and, where it is the user's own, a
// job's output.
package slurm
