// Package recur tunes jobs that return: the same kind of job runs again and again to
// the same end, and each run may be started under other settings.
//
// It takes the points of a space, a goal, and what was paid for: the cost of epochs, and
// of runs that reached their end, were stopped, or failed. It returns the course of the
// next run, the point of its next epoch, whether it is stopped, and the best point
// known. Knobs are of two sorts. System knobs (cores, memory, a power limit) change what
// an epoch costs and nothing else: they are measured within a run, one epoch each, and
// an ordered one is taken to have a single valley, or a single threshold where the goal
// is to need as little as the limits allow. All others make up the course of a run: they
// change how many epochs it takes, which is noisy and costs a run to learn. The epochs
// of a course are shared by all its system settings.
//
// The next course is the one whose expected gain over the runs still to come outweighs
// what it is expected to cost now. Nobody knows how many are still to come: as many as
// there were, and a few. What an untried course costs is a Gaussian process over the
// logarithms of its knobs, fitted to the courses that were run.
//
// # Whole runs
//
// A job that cannot be moved has one point a run (Whole). The same tuner chooses, but for
// what a whole run makes dearer: system knobs are searched along their lines as within a
// run, a step of at most an octave at a time, one run for each point, and one between two
// that were measured only where that is expected to pay. What a run shows is the setting
// and its input together. Each run is therefore taken to have an
// unknown factor of its own, whose spread is learned from runs that had the same point; it
// is the mixed model of the textbooks, and its arithmetic has the consequences that are
// wanted. Two points of one run are compared without that factor, and so closely. Two
// points of two runs are compared with the doubt of both. A point is called best only
// when its gain is clear of that doubt, the error of five percent shared among all that
// were tried, so that one lucky return is repeated, not believed. Where inputs differ by
// much nothing ever becomes clear, and the owner's settings stay: that is the honest
// answer. Runs that others disturbed are the caller's to leave out.
//
// Nothing untried is run once tries that turned out worse have lost more than a share of
// all runs. No run is stopped: its owner wants the result. What the tuner reaches within
// runs, it reaches a whole run at a time only as far as runs can tell: see the columns
// whole_* of evaluate tuner.
//
// The owner's settings come first and are never stopped. Nothing that was not measured
// is ever called best. The same history gives the same answer. A Tuner holds nothing but
// its history; it draws no random number, reads no clock and does no I/O.
package recur
