// Package respond predicts what settings of system knobs do to a job: the log ratios of its
// seconds, its joules and its objective per epoch, against its owner's settings, each with
// a standard deviation.
//
// The prior is physical: Amdahl's law with a coherence term and a limit to the cores that help.
// The parallel share is solved from the CPU time that the job's first epochs used; cores that
// wait actively look busy, and threads that a script sets may crowd fewer cores. The laws are
// weighed by the job's own trials, by what its kind and its class showed, and, as a hint, by the
// length of epochs in earlier runs with other cores. Where no law explains what was seen, all
// predictions widen. Joules are active, in proportion to CPU time, plus idle, in proportion to
// cores and time, plus those of the GPUs, in proportion to time.
//
// The package is pure: no clock, no randomness, no I/O, no state. It decides nothing, and
// says nothing about knobs that change what a job learns.
package respond
