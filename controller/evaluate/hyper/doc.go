// Package hyper replays hyperparameter searches over recorded learning curves, all with
// the same seconds.
//
// In come tables of curves. Of each workload on each machine the runs are the
// candidates; running one on for an epoch costs the seconds that the epoch was recorded
// with. A search ends when the next epoch would cost more than what is left. Its regret
// is the least error that any of its runs had at the last epoch that it ran, less the
// least error of all recorded full runs, and never below 0: nothing that was not
// trained counts. The error is 1 - quality, or the loss where no quality is recorded.
// Qualities above 1 are percentages. An epoch that tells no error has that of the epoch
// before it; a run that goes on without one for longer than runs usually do broke there.
// Runs without seconds are left out where others have some, and told. Out comes a Report.
//
// One worker searches: seconds are those of computing, not of waiting.
package hyper
