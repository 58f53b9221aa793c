// Package records reads and writes recorded runs: trials (a row for each measured
// configuration), curves (a row for each epoch), samples (a row for each sampling
// interval) and adaptations (a row for each epoch of a job that was changed while it
// ran). The files are CSV with a header row, UTF-8, with a point in decimals; an empty
// cell is missing. A name or content that is gzip is read as such.
//
// The columns that the formats name hold numbers (workload, machine, run, scenario and
// action words); what stands in any other column, and in a setting, is a number where it
// reads as one, and else a word. NaN, NA, null and infinite numbers are missing, failed may
// be true or false. A run is known by its name, workload, machine, scenario and input.
//
// In goes a file; out comes a Table whose rows know their line, or one error with file,
// line and column that says what was expected. A column that begins with knob_ is a
// setting. A cell that is missing is never a zero, and a row is never left out quietly.
package records
