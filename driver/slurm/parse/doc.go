// Package parse reads what Slurm's commands print.
//
// In comes the output of squeue, scontrol, sacct and sinfo as this module asks
// for it; out come values, or an error that is ErrFormat. The readers are strict:
// a record that lacks a field, says one twice, or says it in a way that is not
// known is an error and never a guess. Free text that a user wrote (a job's name,
// its comment) stands between the fields of scontrol; a name that imitates a
// field makes that field appear twice, and so the record unreadable rather than
// wrong. The package runs nothing and opens nothing. Times are read as UTC,
// because the commands are run with TZ=UTC.
package parse
