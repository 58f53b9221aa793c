// Package epochs runs a workload epoch by epoch, the way a tuner expects of a job.
//
// In come the command line and environment, a piece of work, and stop requests;
// out come one line an epoch, a checkpoint when one is asked for, and the exit
// status. It knows nothing of what an epoch does. A run that goes on from a
// checkpoint does no epoch twice and gives what an uninterrupted one would.
package epochs
