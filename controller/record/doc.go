// Package record runs a factorial of commands and settings for real and writes down
// what it measured, in the formats of package records, so that a site can judge the
// tuner on its own programs.
//
// In come a Plan, a folder and a Meter; out come trials.csv, curves.csv and
// samples.csv, and a Result that says what could not be measured. Runs come one at a
// time, each repeat in a random order of its own, in a scratch folder that is removed.
// Each run that ended is kept in a file of its own, written at once or not at all, so
// that an interrupted recording goes on where it stopped. What was not measured is an
// empty cell. The package never runs more than one command at a time, never takes a
// failed run for a measurement, and never mixes the runs of two plans in a folder.
//
// One goroutine reads the output of the command that runs; it has ended when the run
// has.
package record
