// Package task finds what the process of a batch script writes to, and where in it this
// attempt of the job began.
//
// The input is a process id of the caller's own user, such as that of the batch script beside
// which a scheduler started the caller. The output is the path of its output, the byte at
// which its first line begins, and that it has ended. The package never opens a file of the
// job's, never sends a signal, and never waits without a context.
package task
