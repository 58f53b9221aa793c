// Package gauss proposes the next settings to measure by Bayesian optimisation.
//
// In come the points of finite candidates (see package design), what was measured at
// some of them, and perhaps what earlier jobs let expect; out comes the candidate whose
// expected improvement is greatest. The model is a Gaussian process: Matérn 5/2 with a
// length for each axis, one part jointly over all axes and one as a sum over them, for
// the logarithm of an outcome is often nearly such a sum. Lengths, shares and noise are
// those of the greatest posterior, found by L-BFGS from fixed starts.
//
// The package is pure and deterministic. It never proposes what was measured, nor
// anything but a candidate.
package gauss
