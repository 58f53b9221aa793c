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
// What is asked before anything is done, and why, is in scripts/slurm/README.md (Site mode: the
// broker), and what happens when one dies in driver/slurm/DESIGN.md (Advice). Whether a job has
// saved by the time of a requeue is the controller's word. Root's jobs are never touched: who could
// steer them could steer root. A rerun gives a job its owner's memory,
// or time limit, at once, so that it is not started or killed with less again if the controller
// does nothing more; after that it is never lowered again. Where the broker dies between these two
// effects, either is asked for once more: by an update, which no limit applies to, or by a rerun
// where it was started and killed meanwhile.
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
