// Package budget keeps what a job may use, by who said so, and reads what the
// administrator wrote on the node.
//
// In come budgets of three origins: the administrator's file, the controller, the job's
// own user; out goes the one that counts, which is the lowest, so that a forged one can
// only be lower and only be about a job of its forger's. Nothing is enforced here or
// elsewhere in the exporter: a budget is a number beside the joules.
//
// # The administrator's files
//
// A file <folder>/<manager>/<id>, such as slurm/42 or nomad/ALLOCATION.TASK, that a
// prolog writes and an epilog removes, in the form that api.ParseBudget reads:
//
//	mkdir -p /run/pitchpipe/budgets/slurm
//	echo "joules=2e6 seconds=$(( SLURM_JOB_END_TIME - SLURM_JOB_START_TIME ))" >/run/pitchpipe/budgets/slurm/$SLURM_JOB_ID
//
// Only files of jobs that run are looked at, once per sample. A file, or a folder on the
// way to it, that another user than root and the exporter's own can write is refused.
// The package never writes.
package budget
