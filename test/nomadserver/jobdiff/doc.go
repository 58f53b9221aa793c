// Package jobdiff says what differs between two versions of a job, as Nomad's plan
// shows it.
//
// In come two canonical jobs and the scheduler's counts; out comes a tree of added,
// deleted and edited fields, with the scheduler's remarks on what each means for
// running allocations. It changes neither job.
package jobdiff
