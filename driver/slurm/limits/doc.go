// Package limits reports whether a job of some size would pass the limits of its association,
// its QOS and the QOS of its partition.
//
// What slurmctld counts against (parse.Assignments), a job that waits, others that will start
// beside it whatever is used up by then, and the size that it is to have go in. Nil comes out,
// or an error that names whose limit it is, its value, what is in use of it, and what the job
// would add. Its users change jobs with rights for which Slurm skips these limits. As in Slurm
// a limit of a QOS hides the same limit of the association and the accounts above.
//
// A job that gets whole nodes has more than it asks for, and how much is unknown: where there
// is a limit for that, the error is ErrUnknown. Takes checks the same against what a partition
// gives one job.
//
// The package runs no command and never guesses: without enough facts it returns ErrUnknown.
// It knows CPUs, memory, nodes, billing without weights, and their minutes; such a change does
// not touch other resources. It does not look at how many jobs one may have: the job is among
// them already.
package limits
