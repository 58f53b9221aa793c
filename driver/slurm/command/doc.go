// Package command runs Slurm's commands.
//
// Input: a command with its arguments. Output: what it printed, or an error
// that wraps one of package driver's: a slurmctld that is away is
// driver.ErrTransient, a call that may or may not have had its effect is
// driver.ErrUnknown. Every call has a time limit. The environment of a call is
// made here, so that no SQUEUE_ or SBATCH_ variable of a user's shell changes what
// a command prints or does; times are printed in UTC. The package never reads a
// meaning into what was printed to standard output, and never repeats a call.
package command
