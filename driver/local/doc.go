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
// A job is forgotten, with all that its folder holds, 30 days after it ended.
//
// The package never reads knowledge, never decides that a job should change, and
// never starts an attempt unless it knows that no other runs.
//
// DESIGN.md says how it queues, what an attempt is, and what a job finds in its environment.
package local
