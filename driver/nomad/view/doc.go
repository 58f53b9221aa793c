// Package view makes a driver.Job of what Nomad shows of a job: its specification,
// its allocations, and the evaluation that waits for room.
//
// Input: an Input of things that were read. Output: the job with its attempts. An
// attempt is an allocation that began: a restart in place by the job's restart policy
// belongs to it; one with other variables (Restart) begins another, and an allocation that
// was replaced before any task began is not an attempt.
//
// # How an allocation ended
//
// An allocation that was replaced ends as "complete" too, whatever its tasks did. Work
// is finished where the task ended by itself, not after a "Killing", with status 0. A
// time limit is known by the description that Nomad's client gives the allocation. A
// kill for memory is status 137 that Nomad did not ask for: the flag oom_killed is not
// set by every task driver, and counts only where it says yes. A task that never began
// because its driver or its set-up failed is driver.NotStarted.
//
// The package is pure: it knows no clock and makes no request.
package view
