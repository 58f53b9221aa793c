// Package driver is the contract between the controller and a scheduler, as
// database/sql/driver is between database/sql and a database.
//
// Input: what the controller wants: a job to start under a request id, an
// intent to advance. Output: jobs as the scheduler sees them, the one step that
// was taken, and errors that say what the caller may do next. A driver never
// decides whether a job should be changed, never reads knowledge, and never
// takes a step that could not be taken again after a crash.
//
// Neither Slurm nor Nomad has one atomic "resubmit", so the contract has none.
// Advance re-reads the scheduler and takes at most one repeatable step of
// checkpoint, stop, change, start; package move has the machine that all drivers share, and
// says why a crash at any point is safe. The controller makes an Intent durable before
// the first Advance and calls Advance with the same Intent until it is done; after
// a crash it simply goes on calling.
//
// An Intent with Discard ends the attempt without asking it to save: what it did since
// its last checkpoint is lost. The steps stay the same, and so does what protects the
// job: its owner's word counts, a job without a checkpoint is not touched, and an
// attempt that ends by itself meanwhile is never run again.
//
// What an attempt has instead of its owner's settings is one Change. Live settings
// travel in a file that the job reads; EncodeSettings says what it holds.
//
// The package imports only the standard library.
package driver
