// Package local is the embedded scheduler for one machine.
//
// Input: job files and intents. Output: real processes under a supervisor each,
// and durable records from which a new Driver on the same directory goes on. The
// process of the Driver may die at any moment: what runs goes on running, what
// was asked for under a request id exists once, and a step that was begun is
// finished by the next call.
//
// # The directory
//
//	lock                 held while a Driver is open; one at a time
//	next                 number of the next job
//	requests/HASH        a request id and the number that it claimed
//	jobs/ID/job.json     the record of one job, replaced as a whole
//	jobs/ID/script       an sbatch script
//	jobs/ID/output.log   its output, unless the job file names another
//	jobs/ID/settings.json  what PITCHPIPE_SETTINGS names, where the job has it
//	jobs/ID/attempts/N-L one launch of attempt N; see package supervise
//
// Every transition is in job.json before its effect can be seen. An attempt has a
// second launch only where the first is proven never to have executed the job and
// never to do so: void, under its lock, or begun by a supervisor that ended without
// process.json, which is durable before the job is let go.
//
// While the disk is full, new requests are refused and what is due is delayed. Nothing is
// given up, and a supervisor tries for a day to write how its attempt ended.
//
// # The queue
//
// First come, first served, with back-fill that does not delay the head of the
// queue by the declared time limits; see schedule. A job without a memory limit
// takes none of the machine's memory. CPUs are handed out one by one, so that two
// jobs never share one.
//
// A job between two attempts keeps its room, and a job that ran before is first in
// the queue. It is moved to more than it has only where that is free, and holds that from
// the first step on: of two that would grow into the same room the second one is
// driver.ErrNoRoom. A job that no longer fits, because the machine has less room than when
// it was accepted, waits and holds up no other; a change that no longer fits is
// dropped.
//
// # Attempts
//
// Job.Attempt grows when the next attempt is queued, so that an intent for the
// attempt before is superseded from then on. A job that saved for an intent waits
// as Stopped for the next Advance, but not for ever: after Config.Hold it is queued
// again under its old settings. So is a job that saves after its intent was
// abandoned, with the cause driver.CauseLate: saving late loses nothing. The time limit is
// each attempt's own.
//
// An intent with Discard makes the supervisor kill the attempt at once, its main process
// first, so that nothing but the job itself can make it end well: an attempt that ended
// by itself before it was killed has ended.
//
// # What a job finds
//
// Its environment is this process's PATH, HOME, USER, LANG and TMPDIR, then what
// a Nomad job file sets, then Spec.Env, then Change.Env, then PITCHPIPE_JOB_ID,
// PITCHPIPE_ATTEMPT and what its format promises (SLURM_* or NOMAD_*). An sbatch
// script that sets a name to a literal would override a change of it, which is
// therefore refused; a script that is to be tuned writes NAME=${NAME:-default}.
// Change.Args needs a command line, which only Nomad job files have.
//
// In a Nomad job file ${NAME}, ${env["NAME"]}, ${node.unique.name},
// ${attr.unique.hostname}, ${attr.kernel.name} and ${attr.cpu.arch} are replaced as
// Nomad does it: in env by what comes from outside of the task, in command, args
// and work_dir by the whole environment. What only Nomad could know is refused when the job is
// started; an unknown ${NAME} may be a shell's and stays. Each attempt is its own allocation.
// What a change sets is never interpolated.
//
// PITCHPIPE_SETTINGS is set where the job file's stanza names a live knob or an action, and
// from the first attempt with a live change on. The file is then there in every attempt,
// readable only by the job's user. It is empty ({}) under the owner's own settings. Adapt
// replaces it while the job runs. Its revision is the attempt's number, and one more for each
// Adapt.
//
// A process of the job that is killed for memory ends the attempt as a whole,
// unless the job ends well before that is noticed. Under a change it runs again,
// first with its own memory, then with its own settings: only under these does a
// lack of memory end the job.
//
// The package never reads knowledge, never decides that a job should change, and
// never starts an attempt unless it knows that no other runs.
package local
