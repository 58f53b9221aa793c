// Package recurring tunes jobs that return: the same kind of job runs again and again to
// the same end, and each run may be started under other settings.
//
// It takes the points of a space, a goal, and what was paid for: the cost of epochs, and
// of runs that reached their end, were stopped, or failed. It returns the course of the
// next run, the point of its next epoch, whether it is stopped, and the best point
// known. System knobs (cores, memory, a power limit) change what an epoch costs and
// nothing else: they are measured within a run, one epoch each, and an ordered one is
// taken to have a single valley, or a single threshold where the goal is to need as
// little as the limits allow. All others make up the course of a run: they change how
// many epochs it takes, which is noisy and costs a run to learn.
//
// The next course is the one whose expected gain over the runs still to come, as many as
// there were and a few, outweighs what it is expected to cost now. The cost of an untried
// course is a Gaussian process over the logarithms of its knobs.
//
// # Whole runs
//
// A job that cannot be moved has one point a run (Whole). The same tuner chooses, but for
// what a whole run makes dearer: system knobs are searched a step of at most an octave at
// a time, one run for each point, and one between two that were measured only where that
// is expected to pay. Each run has an unknown factor of its own, that of its input, whose
// spread is learned from runs of the same point: a mixed model. Points of one run are
// compared without that factor, and so closely; points of two runs with the doubt of both.
// A point is called best only when its gain is clear of that doubt, the error of five
// percent shared among all that were tried. Where inputs differ by much the owner's
// settings stay. Runs that others disturbed are the caller's to leave out. Nothing untried
// is run once tries have lost more than a share of all runs. No run is stopped.
//
// The owner's settings come first and are never stopped. Nothing that was not measured
// is ever called best. The same history gives the same answer. The package is pure.
package recurring
