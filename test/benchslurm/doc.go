// Package benchslurm measures what it costs to watch a large queue of Slurm, and how
// soon a new job is seen.
//
// In come a number of jobs and of minutes. It brings up a private cluster with the
// shipped submission plugin, fills its queue with jobs of two users, most of them
// without a stanza, starts the pitchpipe program as a site does, a controller under
// an ordinary account and its broker, and reads from /proc what both with their
// children and slurmctld use: CPU and memory. Then it submits jobs with a stanza at random times and waits until the
// controller's API knows each. Out comes a report with the machine and its load.
//
// It judges nothing: whoever reads the report compares it with what is asked for. It
// never measures on a cluster that is not its own.
package benchslurm
