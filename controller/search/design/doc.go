// Package design says where to measure before anything is known: at random, on a grid,
// or by a Latin hypercube. It also puts settings into the coordinates that the models
// of the sibling packages work in.
//
// In come candidates (settings) and a source of randomness; out come a Space whose
// axes are scaled to the unit interval, points in it, and the candidates nearest to
// them, none twice. The unit of a knob does not matter.
//
// The package is pure: it holds no state, does no I/O, and draws only from the
// generator that it is given.
package design
