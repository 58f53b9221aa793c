// Package evaluate reads and writes the tables of recorded runs, and prints what an
// evaluation found in them. The evaluations themselves are in models and replay.
//
// Input: files of recorded runs: trials (a row for each measured configuration), curves (a
// row for each epoch), samples (a row for each sampling interval) and adaptations (a row
// for each epoch of a job that was changed while it ran). They are CSV with a header row,
// gzip or not; an empty cell is missing. The columns that the formats name hold numbers
// (workload, machine, run, scenario and action words). Any other column, and a setting, is
// a number where it reads as one, and else a word. A column that begins with knob_ is a
// setting. A run is known by its name, workload, machine, scenario and input.
//
// Output: a Table whose rows know their line, or one error with file, line and column; and
// a Report as JSON or as text. KEYS.md lists the keys of each report, with order, column and
// meaning; the package reads it, so that it is the only place where they are.
//
// The package never takes a missing cell for a zero, never prints an unknown figure as one,
// and never leaves a row out quietly.
package evaluate
