// Package output reads the files that jobs name as their output.
//
// Its input is a path, which is the job's own word, and the user whom the file has to
// belong to. It opens plain files of that user only: a device, a FIFO or another's file is
// never opened, not even for a moment. It waits at most Patience for a file system that
// does not answer, and for a user whose files hang it stops asking.
package output
