// Package respond predicts what settings of system knobs do to a job: the log ratios of its
// seconds, its joules and its objective per epoch, against its owner's settings, each with
// a standard deviation.
//
// The prior is physical. How an epoch's time falls with cores is Amdahl's law with a
// coherence term and a limit to the cores that help. The parallel share is solved from the
// CPU time that the job's first epochs used; cores that wait actively look busy, so that a
// job that uses all of its cores shows little. The laws are weighed by its own trials, and by
// what its kind and its class showed: what was seen at eight cores says something about
// four, and one run's four cores about another's. Where no law explains what was seen,
// all predictions widen. Joules are active, in proportion to CPU time, plus idle, in
// proportion to cores and time, plus those of the GPUs, in proportion to time.
//
// The package is pure: no clock, no randomness, no I/O, no state. It decides nothing, and
// says nothing about knobs that change what a job learns.
package respond
