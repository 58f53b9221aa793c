// Package driver is the contract between the controller and a scheduler, as
// database/sql/driver is between database/sql and a database.
//
// In comes what the controller wants: a job to start under a request id, an
// intent to advance. Out come jobs as the scheduler sees them, the one step that
// was taken, and errors that say what the caller may do next. A driver never
// decides whether a job should be changed, never reads knowledge, and never
// takes a step that could not be taken again after a crash.
//
// Neither Slurm nor Nomad has one atomic "resubmit", so the contract has none.
// Advance re-reads the scheduler and takes at most one repeatable step of
// checkpoint, stop, change, start. The controller makes an Intent durable before
// the first Advance and calls Advance with the same Intent until it is done; after
// a crash it simply goes on calling.
//
// What an attempt has instead of its owner's settings is one Change. Live settings
// travel in a file that the job reads; EncodeSettings says what it holds.
//
// The package imports only the standard library.
package driver
