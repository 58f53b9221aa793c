// Package broker does to the jobs of others what a controller without rights may have done to
// them, and nothing else.
//
// Requests come in on a Unix socket from processes whose user the kernel vouches for: the
// script of a job, a signal, a requeue, a discard, an update, a release, a rerun, advice. Slurm's own
// commands go out, run by an account with Slurm's administrator level Operator, or a refusal
// with its reason. The client has the verbs of package slurmctl and returns package driver's
// errors; it can also ask beforehand whether a size would be refused. A job is named by its
// number, a task of an array always by ARRAY_TASK, since tasks that wait share a number. A whole
// array is never changed.
//
// # What is asked before anything is done
//
//  1. Does a controller ask? Others, the jobs' owners included, get ErrDenied.
//  2. Is there such a job, has it not ended (except for a rerun), is it one that is moved: a batch job of
//     an ordinary user, or a task of an array, with one task on one node, in no heterogeneous job and
//     without a deadline? Root's jobs are never touched: who could steer them could steer root.
//  3. Has its script a tuning stanza without faults, in mode apply? The site's submission
//     plugin marked the job in its AdminComment, or the site has none (Config.Scripts).
//  4. Is this verb due?
//     A signal: the one that the stanza names, while the job runs, in at most Config.Restarts
//     attempts.
//     A requeue: after that signal in this attempt, never of a job that leaves by itself once it
//     saved, never against --no-requeue, and never of a job that has ended (requeue Incomplete).
//     Whether it has saved by then is the controller's word.
//     A discard, which is a requeue without that signal: only of an attempt that was changed here
//     while the job waited for it, so that its owner's own attempts keep their work; it counts
//     among the Config.Restarts attempts.
//     An update: while the job waits, to cores and memory that its stanza allows or its owner
//     asked for, never to less time than that, and to no more than that but in the partitions of
//     Config.Above; to less memory where a kill can be taken back (see below).
//     A start time: only where we made the wait, and at most Ahead from now; a
//     task of an array that waits for its first attempt and has no number yet may be made to
//     wait, for Ahead in all, since only an update gives it the number by which the task
//     prolog finds its settings.
//     A release: only of a job that left for our signal with its stanza's exit status, and that
//     the cluster holds for that.
//  5. Would a partition take the changed job, and would it pass the limits of its association, its QOS and the QOS
//     of its partition (package limits), with what others use now and all that Slurm gives it: whole cores, or
//     whole nodes? Slurm 22.05 does not ask that of an Operator, and does not count a limit any more that an
//     Operator's update touched: such a job starts although the limit is used up, when it was made smaller, too.
//     So smaller sizes are asked about as well, other jobs that wait with a size of ours (each task of an array)
//     count as used, and sizes are changed one at a time. A size that the job has is not set once more.
//
// # Less memory
//
// A kill for memory ends a job, and releases its dependants. So less than its owner asked for
// is set only where he allows restarts, slurmctld remembers ended jobs for two minutes, no
// waiting job depends on this one, and no limit counts memory, which might keep it from
// getting its own back; never less than its stanza's knob allows or than was set before. A
// job that was killed under such a size may be put back into the queue (rerun): the request
// gives it its owner's memory at once, so that it is not started or killed with less again if the
// controller does nothing more. After that it is never lowered again. Where the broker dies between
// these two effects, either is asked for once more: by an update, which no limit applies to, or by
// a rerun where it was started and killed meanwhile.
//
// # Advice
//
// In the partitions of Config.Advice a job without a stanza may wait with a lower time limit and
// priority than its owner asked for, where it could run again (as with less memory) and would not
// get round a limit. The owner's limit returns Config.Raise before the job meets the lower one,
// whether or not a controller lives. A job that met it runs again with its owner's (overrun).
//
// # What its owner asked for
//
// After the first update squeue shows the broker's own values. So it keeps, durable
// and before each effect, what the owner asked for and what was set since. A value that
// is neither is new and becomes what the owner asked for. Each task of an array has its own record.
// One line for each effect and each refusal goes to an audit file, before the effect.
//
// # Whose words are believed
//
// scontrol prints texts that users write between its fields. The numbers therefore come
// from squeue, which prints no such text here but the folder of the job, last; a record of scontrol
// that says otherwise, that has fields in place of texts, or that is more than one line, is
// refused. The array of a task is squeue's word, too. Who depends on a job is printed
// with names, last: one that imitates a line can only keep memory as it is.
//
// Every user may connect, and a refusal says why. Only few connections from others than the
// controller are held at a time, and only few refusals a minute are logged.
//
// The package never cancels a job, never submits one, never holds one, changes nothing of a
// job that runs but gives it its owner's time again, and takes no name of a user from a request.
package broker
