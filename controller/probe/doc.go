// Package probe finds the settings of a job by short runs before its submission.
//
// Input: a job file with the variables that make its work short, its policy, its owner's
// settings, and a driver. Output: what was tried, and the settings to submit the job with:
// the best ones if they are better beyond the noise, else the owner's.
//
// The owner's settings are tried first, then what package search proposes: one short job
// after the other, each with a request id of its own and marked as untuned. Epochs are read
// from the job's output, with the time at which each line was read. Joules come from
// Config.Measure. Package search judges the trials as it does those of a running job.
//
// A result is stored as soon as its job has ended. After a kill the next run continues
// behind the last result. A job that was stopped, or that ended while its output was not
// read, is run again, since the times of its epochs are unknown. When ctx ends, the running
// job is stopped.
//
// The package never submits the job itself, never runs two jobs at a time, and never runs
// a command that its author did not declare harmless.
package probe
