// Package trials runs hyperparameter searches as ordinary jobs: search → trial → attempt.
//
// Input: a job file with a search block; output: jobs that a driver starts and ends, each with its own
// hyperparameters in its environment. The package feeds what their epochs reported to package searcher,
// in one order for all trials, and carries out the actions that come back. It decides nothing itself,
// and never touches the system knobs of a trial: a trial is a job like any other to the rest of the
// controller.
//
// # Submissions
//
// A search has at most as many jobs as its parallel, queued ones included, and all searches together start
// one each half second, in turn. A trial is never a task of a job array: the tasks share one environment
// and one script, so each would have to look up its hyperparameters. The saved submissions do not matter
// at this pace.
//
// # Crashes
//
// What a search knows, the outcome of each trial, and what is still to be done for it are written in one
// transaction before anything is done (Trial.Todo). Starting a job is repeatable by its request, which is
// made of search, trial and attempt; ending a job is repeatable anyway. An epoch counts once, by its
// number. So a controller that dies at any point goes on where it was: no trial is lost, no report counts
// twice, and only work since a trial's last checkpoint is done again.
package trials
