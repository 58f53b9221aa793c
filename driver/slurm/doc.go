// Package slurm drives the jobs of one user of a Slurm cluster, with that user's
// rights and by Slurm's own commands; nothing is installed but this binary.
//
// In come job files and intents; out come sbatch, scancel and scontrol, jobs as
// squeue and scontrol show them, and a journal of what Slurm does not keep: which
// request made which job, what its owner asked for before it was changed, and
// which step of which intent was taken. The process may die at any moment: the
// next one on the same directory goes on. Every step reads the job anew.
//
// # Seeing
//
// One compact squeue every Config.Interval is the truth; scontrol is asked about
// jobs whose line is new or changed. A job that slurmctld has forgotten (MinJobAge
// after its end) comes from the journal, else from sacct where there is
// accounting. A record that cannot be read strictly is an error, never a guess.
//
// # Starting
//
// A request id is claimed on disk before sbatch is called, and its job carries a
// marker of it in its comment, behind the script's own. Where it is not known
// whether an sbatch had its effect, the marker is looked for during Config.Quiet
// before another is submitted. Where slurmctld may have forgotten the job by then
// (MinJobAge), or does not say for how long it remembers, none is submitted again:
// a person must look. Spec.NotBefore is sbatch --begin: the wait ends by itself. A
// script that names its own --begin keeps it.
//
// # Moving
//
//	signal the job                       scancel --full --signal
//	wait until it saved
//	put it back into the queue           scontrol requeue Incomplete
//	change it while it waits             scontrol update NumCPUs CpusPerTask MinMemoryNode TimeLimit
//	end its wait                         scontrol update StartTime=now
//
// The job keeps its number, its dependants, its account and sbatch --wait. It is
// requeued, not requeued and held: Slurm then starts it by itself two minutes
// later, so that a controller that dies between two steps leaves nothing held, and
// a hold that is seen is its owner's. Incomplete makes the requeue nothing to a
// job that has ended: a finished job is never made to run again, since its
// dependants and sbatch --wait have been told.
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
// itself after the signal has saved, too. For the same reason a memory limit is
// never lowered: a kill for memory could not be taken back.
//
// # What is observed only
//
// Tasks of arrays, heterogeneous jobs, jobs of several nodes or tasks, and
// allocations without a script are listed; Check and Advance say why they are not
// changed.
//
// # Attempts
//
// Slurm counts restarts, whoever made them. An attempt has the settings of an
// intent only if it runs in the size that the intent gave it: an update that a
// crash of slurmctld undid is seen there, and the attempt has cause CauseRequeue.
// Of attempts that nobody saw, start and end are unknown.
//
// While no intent is in progress and none waits for its attempt, cores and memory
// of a waiting job and a time limit that change are the owner's or the site's word:
// later intents start from them.
//
// # Environment
//
// A requeued job keeps its environment. Where the site runs the shipped
// TaskProlog, Change.Env goes to Config.SettingsDir/JOBID, lines KEY=VALUE, and
// Change.Live to JOBID.json beside it; Start marks jobs that have a stanza. A
// job that was not submitted here gets neither, unless the site marks it. The
// Note of an intent is written nowhere: the output is the job's own.
//
// The package never acts for another user, never touches priority, never holds a
// job, and opens no file but its own and, where it is the user's own, a job's
// output.
package slurm
