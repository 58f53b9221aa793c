package parse

import "time"

// Running reports whether a state of Slurm is that of a job whose processes are there.
func Running(state string) bool {
	switch state {
	case "RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING", "COMPLETING":
		return true
	}
	return false
}

// Waiting reports whether a state of Slurm is that of a job in the queue.
func Waiting(state string) bool {
	switch state {
	case "PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD":
		return true
	}
	return false
}

// Ended reports whether a state of Slurm is final: none of those that are known not to be.
func Ended(state string) bool { return !Running(state) && !Waiting(state) }

// Cores are those that are asked for: of the job's task, or of the job where none are
// named; at least 1. One task is given no fewer than the CPUs of the job, which an update
// may have raised alone. Once it runs those of the job are what it was given, which may be
// more than it asked for.
func (j Job) Cores() int {
	switch {
	case j.CPUsPerTask == 0:
		return max(j.CPUs, 1)
	case j.Tasks > 1 || j.Nodes > 1:
		return j.CPUsPerTask
	case Waiting(j.State):
		return max(j.CPUsPerTask, j.CPUs)
	}
	return j.CPUsPerTask
}

// Raised reports whether a job waits and will be given more cores than it will then say that
// it asked for.
func (j Job) Raised() bool {
	running := j
	running.State = "RUNNING"
	return Waiting(j.State) && j.Cores() > running.Cores()
}

// Limit is the time limit that was asked for; 0 = none. Slurm's backfill writes a
// year for the limit of a job that has none.
func (j Job) Limit() time.Duration {
	const aYear = 365 * 24 * time.Hour
	if j.TimeLimit == aYear {
		return 0
	}
	return j.TimeLimit
}

// Suspended is for how long the attempt that runs, or ran last, has been suspended.
// Slurm shows the last time that it was suspended or resumed, and for how long it had
// run by then.
func (j Job) Suspended(now time.Time) time.Duration {
	if j.Paused.IsZero() || j.Started.IsZero() || j.Paused.Before(j.Started) {
		return 0
	}
	sum := max(j.Paused.Sub(j.Started)-j.Ran, 0)
	if j.State == "SUSPENDED" {
		sum += max(now.Sub(j.Paused), 0)
	}
	return sum
}
