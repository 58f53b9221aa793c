// Package parse reads what Slurm's commands print.
//
// Input: the output of squeue, scontrol, sacct and sinfo, as this module asks for it, with times
// in UTC. Output: values, or an error that wraps ErrFormat. A record that lacks a field, has one
// twice, or has an unknown form is an error, never a guess. scontrol prints users' texts (the
// name and the comment of a job) between its fields: a name that imitates a field makes the
// field appear twice, so the record is refused. The package runs no command and opens no file.
package parse
