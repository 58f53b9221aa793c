package parse

import "time"

// Running tells whether a state of Slurm is that of a job whose processes are there.
func Running(state string) bool {
	switch state {
	case "RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING", "COMPLETING":
		return true
	}
	return false
}

// Waiting tells whether a state of Slurm is that of a job in the queue.
func Waiting(state string) bool {
	switch state {
	case "PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD":
		return true
	}
	return false
}

// Ended tells whether a state of Slurm is final: none of those that are known not to be.
func Ended(state string) bool { return !Running(state) && !Waiting(state) }

// Cores are those of the job's task, or of the job where none are named; at least 1.
func (j Job) Cores() int {
	if j.CPUsPerTask == 0 {
		return max(j.CPUs, 1)
	}
	return j.CPUsPerTask
}

// Limit is the time limit that somebody asked for; 0 = none. Slurm's backfill writes a
// year for the limit of a job that has none.
func (j Job) Limit() time.Duration {
	const aYear = 365 * 24 * time.Hour
	if j.TimeLimit == aYear {
		return 0
	}
	return j.TimeLimit
}
