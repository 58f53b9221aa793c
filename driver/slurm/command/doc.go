// Package command runs Slurm's commands.
//
// Input: a command with its arguments. Output: what it printed, or an error that wraps one of package
// driver's: driver.ErrTransient where slurmctld is away, driver.ErrUnknown where the call may
// have had its effect. Every call has a time limit and its own environment, so no SQUEUE_
// or SBATCH_ variable of a user's shell changes what a command does; times are printed in UTC.
// The package never interprets standard output and never repeats a call.
package command
