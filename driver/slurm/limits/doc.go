// Package limits reports whether a job of some size would pass the limits of its association,
// its QOS and the QOS of its partition. Its caller changes jobs with rights that make Slurm
// skip these limits.
//
// Input: what slurmctld counts against (parse.Assignments), the job, the other jobs that wait and
// will start with it, and the size. Output: nil, or an error that names whose limit it is, its
// value, what is in use, and what the job would add. As in Slurm, a limit of a QOS hides the
// same limit of the association and of the accounts above. Takes checks the same against what
// a partition gives one job.
//
// The package knows CPUs, memory, nodes, billing without weights, and their minutes: a change
// of size touches no other resource. Without enough facts the error is ErrUnknown, as where a
// job gets whole nodes. The package runs no command, never guesses, and does not count jobs.
package limits
