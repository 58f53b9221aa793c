// Package searcher decides which trials of a hyperparameter search begin, run on, end early and go on
// later.
//
// A Searcher handles one event at a time (a trial reported, or its job ended) and returns actions (create,
// resume, pause, stop, finish). Its Snapshot is all of its state: a Searcher that is made again from it
// goes on as if nothing had happened. The hyperparameters of a trial without a model depend only on the
// seed and the trial's number. Everything else depends on the order of the events, which the reports carry:
// the same order leads to the same actions. All events are kept, so that Replay can show it.
//
// ASHA ends a trial inside its job, at a rung: an epoch after which it is not among the best of those
// that came so far (stopping ASHA). Where a trial has a checkpoint it is paused instead, and resumed once
// it belongs to the best, if that costs less than to bring a fresh trial as far; where nothing else is left to
// do, the best that waits is trained to its end. In a search of many trials without checkpoints the first ones
// end at the lowest rung: else the first of all would be trained to its end whatever it is. Hyperband runs
// ASHA in brackets that begin at higher and higher rungs. L. Li et al., "A System for Massively Parallel
// Hyperparameter Tuning", 2020.
//
// The package is pure and never runs, measures or stores anything. A rung never changes how many
// epochs a trial plans for: its learning-rate schedule would change with it.
package searcher
