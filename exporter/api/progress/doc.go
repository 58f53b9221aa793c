// Package progress reads the growing output of a job and reports each epoch that ended. It is
// what `pitchpipe listen` runs inside the job, as the job's user.
//
// The input is a path, an offset, and a pattern with the named groups epoch, total, loss and
// quality, or one of the lines that say that a checkpoint was saved. The output is api.Reports
// in the order of the lines, each with the time at which its line was read. The package never
// writes to the file, never reports an unfinished line, and never blocks the reading on a slow
// exporter.
//
// Read does the same for a stream, outside the job: a controller that follows the output
// through its scheduler's API reports on the job's behalf. Follow and Read run one goroutine
// that reads (the caller's) and one that delivers; both have ended when they return.
//
// A Script is the process of a batch script: what it writes to, where in that this attempt of
// the job began, and when it has ended.
package progress
