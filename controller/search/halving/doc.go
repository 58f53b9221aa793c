// Package halving stops the runs of a hyperparameter search that fall behind, so that
// the same seconds see more settings: asynchronous successive halving (ASHA, Li et al.,
// 2020).
//
// In come the trials with what they reached at each rung (a number of epochs); out
// comes which of them runs on to its next rung, or that a new one should begin. A rung
// promotes the best 1/factor of those that reached it. Run plays this against a budget
// of seconds, epoch by epoch; a trial that runs on goes on from its checkpoint and pays
// only for its new epochs. With a single rung it is a search of full runs.
//
// The package is pure and deterministic: the order of new trials comes from the caller.
package halving
