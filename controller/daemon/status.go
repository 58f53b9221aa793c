package daemon

import (
	"slices"
	"time"

	"pitchpipe/controller/daemon/api"
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
	until := now
	if !job.Ended.IsZero() {
		until = job.Ended
	}
	out.Seconds = until.Sub(job.Submitted).Seconds()
	if rec == nil {
		return out
	}
	// Ended means that the tuner is done with it too.
	out.Ended = job.State.Ended() && rec.Phase.Over()
	out.Phase, out.Reason, out.Sentence = string(rec.Phase), rec.Reason, rec.Reason.Sentence()
	if rec.Detail != "" {
		out.Detail = rec.Detail
	}
	out.Class, out.Epoch, out.Total = rec.Class, rec.Done(), rec.Total
	out.Restarts, out.Probes = len(rec.Restarts), len(rec.Probed)
	out.Own, out.Current, out.Outcome = rec.Own, rec.Settings(job.Attempt), rec.Outcome
	out.Trials = tuning.TrialsOf(rec.Epochs, rec.Own)
	if rec.Policy.Mode != "" { // it has a stanza, and that was read
		out.Policy = &rec.Policy
	}
	if joules, source := rec.Joules(); joules != nil {
		j := float64(*joules)
		out.Joules, out.Source = &j, source
	}
	row := seen(rowOf(rec), job, now)
	if v, ok := row.CoreHours(); ok {
		out.CoreHours = &v
	}
	if c, free, ok := row.Cost(); ok {
		out.Cost, out.CostUnit, out.FreeEnergy = &c.Amount, c.Unit, free
	}
	if n := len(rec.Epochs); n > 0 {
		out.Quality = rec.Epochs[n-1].Quality
	}
	out.Recalled, out.RightSized = recalled(rec)
	for _, v := range slices.Backward(rec.History) {
		if d := v.Decision; d != nil {
			out.Advice = d.Advice
			break
		}
	}
	return out
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
	case rec.Phase == reconcile.Recalled && rec.Move != nil:
		to = rec.Move.Decision.Settings
	}
	if to == nil {
		return false, false
	}
	diff := rec.Own.Diff(to)
	return true, len(diff) == 1 && diff[0] == tuning.Memory
}
