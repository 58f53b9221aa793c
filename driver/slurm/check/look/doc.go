// Package look gathers what package check judges.
//
// In come who asks, what the controller was told, and how Slurm's commands, the
// exporters and the broker are asked; out come facts, or one error where there is no
// Slurm or its slurmctld does not answer. Every call has a time limit and what is read
// of a file is bounded. What this user may not see is told as that. The package changes
// nothing and submits nothing.
package look
