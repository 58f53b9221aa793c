// Package output reads the files that jobs name as their output.
//
// Input: a path, which is the job's own word, and the user who must own the file. Output: its content.
// The package opens plain files of that user only, never a device, a FIFO or another's file. It
// waits at most Patience for a file system, and asks no more of a user whose files hang.
package output
