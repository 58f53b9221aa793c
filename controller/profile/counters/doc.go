// Package counters makes features of hardware counters: what a program does per
// instruction, whatever the clock and however long it ran.
//
// It takes counts by event, named as perf names them, of one stretch of a run, and
// returns features, in natural logarithms, and the name of the schema that the set of
// events makes. The package never takes a missing event for zero, and never compares two
// sets of events: their schemas differ.
package counters
