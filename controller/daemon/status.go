package daemon

import (
	"cmp"
	"strings"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/story"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// status joins what the scheduler and the tuner know of a job. rec may be nil.
func status(job driver.Job, rec *reconcile.Record, now time.Time) api.Job {
	out := api.Job{
		ID: string(job.ID), Name: job.Name, Owner: job.Owner, State: string(job.State), Detail: job.Detail,
		Attempt: job.Attempt, ExitCode: job.ExitCode, Submitted: job.Submitted, Started: job.Started,
		EndedAt: job.Ended, Phase: string(reconcile.Seen),
	}
	// Time in the queue is not run time: a requeued job has both, in turns.
	out.Seconds = runTime(job, now).Seconds()
	out.Waited = max(0, cmp.Or(job.Ended, now).Sub(job.Submitted).Seconds()-out.Seconds)
	if rec == nil {
		return out
	}
	// Ended means that the tuner is done with it too.
	out.Ended = job.State.Ended() && rec.Phase.Over()
	out.Phase, out.Reason, out.Sentence = string(rec.Phase), rec.Because(), story.Because(rec)
	if why := waits(job); why != "" {
		out.Sentence = strings.TrimSuffix(why+"; "+out.Sentence, "; ")
	}
	out.Detail = cmp.Or(rec.Detail, out.Detail)
	out.Class, out.Epoch, out.Total = rec.Class, rec.Done(), rec.Total
	out.Restarts, out.Probes = rec.Restarted(), len(rec.Probed)
	out.Own, out.Current, out.Outcome = rec.Own, rec.Settings(job.Attempt), rec.Outcome
	out.Trials = rec.Trials()
	if rec.Policy.Mode != "" { // it has a stanza, and that was read
		out.Policy = &rec.Policy
	}
	if joules, source := rec.Joules(); joules != nil {
		out.Joules, out.Source = new(float64(*joules)), source
	}
	row := seen(rowOf(rec), job, now)
	out.CoreHours = row.CoreHours()
	if c, free, ok := row.Cost(); ok {
		out.Cost, out.CostUnit, out.FreeEnergy = &c.Amount, c.Unit, free
	}
	out.Quality = tuning.Last(rec.Epochs).Quality
	out.Recalled, out.RightSized = recalled(rec)
	out.Advice = rec.Advice()
	return out
}

// waits is why a job has not started, as its scheduler says; empty: it has, or nothing is said.
func waits(job driver.Job) string {
	why, slurms := strings.CutPrefix(job.Detail, string(driver.Pending)+": ")
	switch {
	case job.State != driver.Pending || why == string(driver.Pending):
		return ""
	case slurms:
		return "waits: " + why
	}
	return why
}

// recalled reports whether the job was or will be changed before its start, and whether in
// memory alone.
func recalled(rec *reconcile.Record) (changed, memoryOnly bool) {
	var to tuning.Settings
	switch {
	case len(rec.Runs) > 0:
		if first := rec.Runs[0]; first.Attempt == 1 && first.Action == tuning.Move {
			to = first.Settings
		}
	case rec.Queued != nil:
		to = rec.Queued.Settings
	case rec.Move != nil && rec.Move.AtStart():
		to = rec.Move.Decision.Settings
	}
	if to == nil {
		return false, false
	}
	diff := rec.Own.Diff(to)
	return true, len(diff) == 1 && diff[0] == tuning.Memory
}

// runTime is how long the job's attempts ran, as far as its scheduler says.
func runTime(job driver.Job, now time.Time) (ran time.Duration) {
	now = cmp.Or(job.Ended, now)
	attempts := job.Attempts
	if len(attempts) == 0 && job.State != driver.Pending {
		attempts = []driver.Attempt{{Started: job.Started, Ended: job.Ended}}
	}
	for _, a := range attempts {
		if end := cmp.Or(a.Ended, now); !a.Started.IsZero() && end.After(a.Started) {
			ran += end.Sub(a.Started)
		}
	}
	return ran
}
