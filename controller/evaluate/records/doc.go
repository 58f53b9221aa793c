// Package records reads and writes recorded runs: trials (a row for each measured
// configuration), curves (a row for each epoch), samples (a row for each sampling
// interval) and adaptations (a row for each epoch of a job that was changed while it
// ran). The files are CSV with a header row, UTF-8, with a point in decimals; an empty
// cell is missing. A name or content that is gzip is read as such.
//
// In comes a file; out comes a Table whose rows know their line, or one error with file,
// line and column that says what was expected. A column that begins with knob_ is a
// setting. A cell that is missing is never a zero, and a row is never left out quietly.
package records
