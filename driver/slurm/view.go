package slurm

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// leaving reports whether a job was put back into the queue and whose processes are
// still being ended. Slurm counts the restart at once, and shows the end of a
// COMPLETING job that will not run again in the past.
func leaving(j parse.Job, now time.Time) bool {
	return j.State == "COMPLETING" && j.Restarts > 0 && (j.Ended.IsZero() || j.Ended.After(now.Add(2*time.Second)))
}

// begun is how many attempts of a job have been started, as far as the record says; it may
// be nil.
func begun(j parse.Job, r *Record, now time.Time) int {
	switch {
	case parse.Waiting(j.State), leaving(j, now), parse.Ended(j.State) && j.Node == "", neverBegan(j, r):
		return j.Restarts
	}
	return j.Restarts + 1
}

// neverBegan reports whether a job was cancelled while the processes of an attempt that had
// been put back into the queue were being ended: Slurm counts the restart, and shows the
// node, the start and the end of that attempt.
func neverBegan(j parse.Job, r *Record) bool {
	if r == nil || j.Restarts == 0 || len(r.Attempts) != j.Restarts || j.State != "CANCELLED" && j.State != "COMPLETING" {
		return false
	}
	started := r.Attempts[j.Restarts-1].Started
	return !started.IsZero() && started.Equal(j.Started)
}

func final(j parse.Job) driver.State {
	known := map[string]driver.State{
		"COMPLETED": driver.Succeeded, "OUT_OF_MEMORY": driver.MemoryExceeded, "TIMEOUT": driver.TimeExceeded, "DEADLINE": driver.TimeExceeded,
		"CANCELLED": driver.Cancelled, "REVOKED": driver.Cancelled, "PREEMPTED": driver.Cancelled,
		"FAILED": driver.Failed, "LAUNCH_FAILED": driver.Failed, "RECONFIG_FAIL": driver.Failed,
	}
	return cmp.Or(known[j.State], driver.Lost) // BOOT_FAIL, NODE_FAIL, and what is not known
}

// unchanged reports whether a job still has the size that it had. A limit that
// no one asked for is shown while the job runs, and not while it waits.
func unchanged(before, have Size) bool {
	have.TimeLimit = cmp.Or(have.TimeLimit, before.TimeLimit)
	return before == have
}

// same reports whether a job has the size that was wanted. A limit that no one asked
// for is the partition's, and is known once the job runs.
func same(want, have Size) bool {
	return want.Cores == have.Cores && want.Memory == have.Memory && (want.TimeLimit == 0 || want.TimeLimit == have.TimeLimit)
}

// relimited reports whether a job has what an intent gave it except the limit, which its
// owner changed later, unseen before the attempt began.
func relimited(next Next, have Size) bool {
	size := next.Size
	size.TimeLimit = have.TimeLimit
	return same(size, have) && next.Before != nil && next.Before.TimeLimit != 0 && have.TimeLimit != 0 && have.TimeLimit != next.Before.TimeLimit
}

// follow brings the attempts of a record up to what Slurm says.
func follow(r *Record, j parse.Job, now time.Time) {
	if own := numberOf(j); own != "" {
		r.Number = own
	}
	number := begun(j, r, now)
	unbegin(r, j, number)
	for n := len(r.Attempts) + 1; n <= number; n++ {
		r.Attempts = append(r.Attempts, begin(r, j, n, n == number))
	}
	if !j.Held || parse.Running(j.State) && j.State != "COMPLETING" {
		r.Held = j.Held
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		last := a.Number == number
		if last {
			granted(a, j, now)
		}
		if !a.Ended.IsZero() || last && parse.Running(j.State) && !leaving(j, now) {
			continue
		}
		a.Ended = now.UTC()
		if last && parse.Ended(j.State) {
			a.Ended = j.Ended
		}
		if last && (j.Exit.Exit != 0 || parse.Ended(j.State)) {
			a.ExitCode = j.Exit.Code()
		}
	}
	if parse.Ended(j.State) && r.Moving != nil && !(r.From.Memory && j.Restarts == r.From.Restarts) {
		r.Moving = nil
	}
}

// granted fills in what Slurm gave the attempt that runs, or ran last. What a job that
// waits asks for is not what it will get.
func granted(a *driver.Attempt, j parse.Job, now time.Time) {
	running := parse.Running(j.State) && !leaving(j, now)
	if j.Node == "" || !running && !parse.Ended(j.State) {
		return
	}
	if j.CPUs > 0 && (running || a.CPUs == 0) {
		a.CPUs = j.CPUs
	}
	sum := j.Suspended(now)
	if stands := j.State == "SUSPENDED"; !j.Paused.IsZero() && (!stands || sum-a.Suspended >= time.Minute) { // not at each look
		a.Suspended = sum
	}
}

// begin returns a new attempt with number n.
func begin(r *Record, j parse.Job, n int, present bool) driver.Attempt {
	a := driver.Attempt{Number: n, ExitCode: -1, Cause: driver.CauseSubmitted}
	if n > 1 {
		a.Cause = CauseRequeue
		before := &r.Attempts[n-2]
		a.Change = before.Change
		if present && (before.Ended.IsZero() || before.Ended.After(j.Started)) {
			before.Ended = j.Started
		}
	}
	if present {
		a.Started = j.Started
	}
	if next := r.Next; next != nil && next.Number <= n {
		switch {
		case next.Number == n && next.Overruled && (!present || same(next.Size, slurmctl.SizeOf(j))):
			a.Change = next.Change
		case next.Number == n && (!present || same(next.Size, slurmctl.SizeOf(j))):
			a.Change, a.Cause, a.Intent = next.Change, driver.CauseIntent, next.Intent
		case next.Number == n && present && relimited(*next, slurmctl.SizeOf(j)):
			a.Change, a.Cause, a.Intent = next.Change, driver.CauseIntent, next.Intent
			a.Change.TimeLimit, r.Own.TimeLimit = 0, slurmctl.SizeOf(j).TimeLimit
		case present && same(r.Own, slurmctl.SizeOf(j)):
			a.Change = driver.Change{}
		}
		if next.Memory && a.Cause == driver.CauseIntent {
			a.Cause, a.Intent = driver.CauseMemory, ""
		}
		r.Next = nil
	}
	if n == 1 {
		r.Delayed = false
	}
	return a
}

func (d *Driver) view(ctx context.Context, j parse.Job, r *Record) (driver.Job, error) {
	if _, err := d.script(ctx, j, r); err != nil {
		return driver.Job{}, err
	}
	return d.sketch(j, r), nil
}

// sketch is a job with as much of its script as is known.
func (d *Driver) sketch(j parse.Job, r *Record) driver.Job {
	now := time.Now()
	number := begun(j, r, now)
	job := plain(j)
	job.Attempt, job.Filename, job.Node, job.Resources = number, j.Name, j.Node, resources(slurmctl.SizeOf(j))
	job.Resources.GPUs, job.Resources.Whole, job.Suspended = j.GPUs, j.Whole, j.State == "SUSPENDED"
	if parse.Ended(j.State) && number != j.Restarts {
		job.ExitCode = j.Exit.Code()
	}
	if job.State == driver.Failed && d.neverStarted(j) {
		job.State = driver.NotStarted
	}
	if number == 0 {
		job.Started = time.Time{}
	}
	if own := numberOf(j); own != string(job.ID) {
		job.Alias = own
	}
	if t, ok := d.known(j, r); ok {
		job.Source, job.Fingerprint = t.script, t.fingerprint
		job.Resources.Env, job.Resources.Command = t.env, shaped(t.command, j)
	}
	if r == nil {
		r = &Record{Own: slurmctl.SizeOf(j), Submitted: j.Submitted, Delayed: headStart(j)}
		follow(r, j, now)
	} else {
		job.Request, job.Submitted = r.Request, r.Submitted
		job.Resources.Env = driver.Merge(job.Resources.Env, r.Env)
		job.Filename = cmp.Or(r.Filename, job.Filename)
		own := resources(r.Own)
		job.Resources.Cores, job.Resources.MemoryBytes, job.Resources.TimeLimit = own.Cores, own.MemoryBytes, own.TimeLimit
	}
	if job.Observed, job.NoRequeue = observedOnly(j), !j.Requeue; j.CPUsPerTask > 0 && j.Tasks > 1 { // its size is that of one
		job.Resources.Cores *= j.Tasks
		if r.Own.PerCPU {
			job.Resources.MemoryBytes *= int64(j.Tasks)
		}
	}
	job.Attempts = slices.Clone(r.Attempts)
	if len(job.Attempts) > 0 {
		job.Change = job.Attempts[len(job.Attempts)-1].Change
		job.Started = job.Attempts[0].Started
	}
	switch between := parse.Waiting(j.State) || leaving(j, now); {
	case between && r.Moving != nil && !r.Moving.Queued && j.Restarts == r.From.Restarts+1: // for the intent in progress
		job.State = driver.Stopped
	case parse.Ended(j.State) && r.Moving != nil && r.From.Memory:
		job.State, job.Ended, job.ExitCode = driver.Stopped, time.Time{}, -1
	case between && j.Restarts > 0:
		job.State, job.Attempt = driver.Pending, j.Restarts+1
	}
	if r.Next != nil && job.State == driver.Pending {
		job.Change = r.Next.Change
	}
	if r.Delayed && job.State == driver.Pending {
		job.NotBefore = j.Eligible
	}
	if j.State == "SPECIAL_EXIT" && job.State == driver.Pending && r.Moving == nil && !r.saved(j) && !r.Held {
		job.Held = fmt.Sprintf("it left with status %d unasked (RequeueExitHold)", j.Exit.Code())
	}
	return job
}

// shaped is the identity of the command of a job with its number of tasks and nodes where
// it has several, or a whole one: it teaches nothing about jobs of another shape.
func shaped(command string, j parse.Job) string {
	switch {
	case command == "":
		return ""
	case j.Tasks <= 1 && j.Nodes <= 1 && j.Whole:
		return command + " on a whole node"
	case j.Tasks <= 1 && j.Nodes <= 1:
		return command
	}
	return fmt.Sprintf("%s of %d tasks on %d nodes", command, max(j.Tasks, 1), max(j.Nodes, 1))
}

func resources(s Size) driver.Resources {
	return driver.Resources{Cores: s.Cores, MemoryBytes: s.Total(), TimeLimit: s.TimeLimit}
}

func detail(j parse.Job) string {
	word := strings.ToLower(strings.ReplaceAll(j.State, "_", " "))
	switch {
	case j.Reason == "NonZeroExitCode":
		word += fmt.Sprintf(": exit status %d", j.Exit.Code())
	case j.Reason != "" && (j.State != "CANCELLED" || j.Reason == "DependencyNeverSatisfied"): // else it is why it waited
		word += ": " + j.Reason
	}
	return word
}
