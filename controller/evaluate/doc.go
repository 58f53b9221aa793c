// Package evaluate is what the evaluations have in common: the form of a report and
// the words for progress. Each evaluation is a package below it, and each runs the very
// code that the controller runs, over recorded data in the formats of package records.
//
// In come recorded tables and the choices of a user; out comes one Report, which prints
// as a table or as JSON with keys that stay. The same data, choices and seed give the
// same report. The keys are those of package keys, which tells what each means; a figure that
// is not finite is null. A row that cannot be used is counted and told (LeftOut), and
// refuses nothing else; only where nothing can be used is there an error. Rows of two
// inputs of a workload (a column input) are never repeats of each other.
//
// An evaluation never writes anything, never asks a controller or a
// scheduler, and never counts what is missing as a zero.
package evaluate
