// Package progress reads the growing output of a job and reports each epoch that
// ended. It is what `pitchpipe listen` runs inside the job, as the job's user.
//
// In come a path, an offset, a pattern with the named groups epoch, total, loss
// and quality, and one of the lines that say that a checkpoint was saved. Out go
// api.Reports, in the order of the lines, each with the time at which its line was
// read. The package never writes to the file, never reports
// an unfinished line, and never blocks the reading on a slow exporter.
//
// Read does the same for a stream, outside the job: a controller that follows the
// output through its scheduler's API and reports on the job's behalf.
//
// Follow and Read run one goroutine that reads (the caller's) and one that delivers;
// both have ended when they return.
package progress
