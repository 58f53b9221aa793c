// Package parse reads what Slurm's commands print.
//
// The output of squeue, scontrol, sacct, sinfo and sdiag goes in, as this module asks for it;
// values come out, or an error that wraps ErrFormat. The readers are strict: a record that
// lacks a field, has one twice, or has an unknown form is an error and never a guess. Users'
// texts (a job's name, its comment) stand between the fields of scontrol; a name that imitates
// a field makes that field appear twice, and so the record unreadable rather than wrong. The
// commands run with TZ=UTC, so times are UTC. The package never runs a command or opens a file.
package parse
