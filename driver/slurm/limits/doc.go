// Package limits tells whether a job of some size would pass the limits of its
// association, its QOS and the QOS of its partition.
//
// In come what slurmctld counts against (parse.Assignments), a job that waits, others
// that will start beside it whatever is used up by then, and the size that it is to have; out comes nil, or an error that names whose limit it is, its
// value, what is in use of it, and what the job would add. It serves whoever changes jobs
// with rights for which Slurm skips these limits. As in Slurm a limit of a QOS hides the
// same limit of the association and the accounts above.
//
// A job that gets whole nodes has more than it asks for, and nobody knows how much: where
// there is a limit for that, the answer is ErrUnknown. Takes asks the same of what a
// partition gives one job.
//
// The package asks nobody and changes nothing. Where it does not know enough to say yes
// it says so with ErrUnknown. It knows CPUs, memory, nodes, billing without weights, and
// their minutes; other resources are none that such a change touches. How many jobs one
// may have is not looked at: the job is among them already.
package limits
