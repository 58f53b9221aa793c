// Package spec reads and rewrites the specification of a Nomad job.
//
// Input: a job as Nomad shows it and a driver.Change. Output: the job with the
// change, what its owner asked for, the reason why a job is only observed, and a
// fingerprint that is the same for a job file and for the job that Nomad made of it.
//
// # What is written into a changed job
//
// Cores go to resources.cores, and cpu is left out then: Nomad refuses both. Memory
// goes to resources.memory in MiB. Where memory_max is set it is the limit, and memory
// is as the owner wrote it, unless the limit falls below it or rises above his. A time
// limit is max_run_duration of the group. Variables go to the task's env; flags
// replace "--k v" and "--k=v" in config.args, or are appended. Besides, a change leaves
// a Mark in the scaling policy of the group, the one place of a job whose change
// restarts nothing, and the variable PITCHPIPE_INTENT in the task's env, so that each
// change is destructive to Nomad: an allocation has what its version says.
//
// A job that its owner registers with a change himself has in its Mark what he wrote in
// place of the change (Begin). Owner gives that back as long as the change is as it was
// written.
//
// The package is pure: it knows no clock and makes no request.
package spec
