// Package recurring tunes recurring jobs: each run may be started under other settings.
//
// Input: the points of a space, a goal, and what epochs and runs cost. Output: the course of the
// next run, the point of its next epoch, whether it is stopped, and the best point known. System
// knobs change what an epoch costs: they are measured within a run, and an ordered one is taken to
// have a single valley. All others make up the course of a run: they change how many epochs it
// takes, which costs a run to learn. The next course is the one whose expected gain over the runs
// still to come outweighs what it is expected to cost now, by a Gaussian process over the
// logarithms of its knobs.
//
// A job that cannot be moved has one point a run (Whole). Each run has its own unknown factor, that of
// its input. The spread of the factors is learned from runs of the same point: a mixed model. A point
// is called best only when its gain is clear of that doubt, the error of five percent shared among all
// that were tried. Nothing untried is run once tries have lost more than a share of all runs.
//
// The owner's settings come first and are never stopped. Nothing that was not measured is ever
// called best. The package is pure.
package recurring
