// Package task tells what the process of a batch script writes to, and where in it
// this attempt of the job began.
//
// In comes a process id of the caller's own user, such as that of the batch script
// beside which a scheduler started the caller. Out come the path of its output, the
// byte at which its first line stands, and that it has ended. The package opens no
// file of the job's, sends no signal, and never waits without a context.
package task
