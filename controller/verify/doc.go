// Package verify compares what ran tuned with what ran untuned.
//
// It takes measured epochs, of one job before and after its move, or of pairs of
// jobs that did the same work, one tuned and one not, and returns a
// tuning.Outcome: a verdict, its reason, and an interval of the log ratio that
// is valid whenever it is looked at, so that a caller may look after every
// epoch and stop at the first clear answer without claiming more than the level
// allows. The verdict is inconclusive until the interval says otherwise.
//
// Warm-up epochs, polluted epochs and epochs that chose the setting, which the caller marks as
// warm-up, are left out. Two equal jobs differ, and so do two attempts of one job: both are
// part of the interval.
//
// How the two jobs of a pair differ is not assumed beyond what chance guarantees:
// Pair says how pairs are built.
//
// No interval repairs this: within one job the untuned epochs come first, so an
// effect of time itself (epochs that get longer as the job goes on) counts as
// an effect of the setting; only pairs of jobs, compared at matching epochs, are
// free of it.
//
// The package is pure, and holds no state.
package verify
