// Package probe finds the settings of a job by short runs before its submission.
//
// Input: a job file with the variables that make its work short, its policy, its owner's
// settings, and a driver. Output: what was tried, and the settings to submit the job with:
// the best ones if they are better beyond the noise, else the owner's. Package search
// proposes and judges the settings as it does for a running job.
//
// A result is stored as soon as its job has ended. After a kill the next run continues
// after the last result. A job that was stopped, or that ended while its output was not
// read, is run again, since the times of its epochs are unknown. When ctx ends, the running
// job is stopped.
//
// The package never submits the job itself, never runs two jobs at a time, and never runs
// a command that its author did not declare harmless.
package probe
