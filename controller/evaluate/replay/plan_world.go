package replay

import (
	"context"
	"slices"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// doing is what the job does until the next instant at which something happens.
type doing uint8

const (
	waiting doing = iota // in the queue
	working              // on an epoch
	saving               // it was asked to leave
	nothing              // it left, or ended
)

// stage is how far an intent is; see package sim, whose order this is.
type stage uint8

const (
	none stage = iota
	asked
	left
	stopped
	changed
)

// pending is how long a job waits for its first start, so that the controller sees it
// before that.
const pending = time.Second

// world is a scheduler with one job and the exporter of its node, at an instant that only
// forward moves.
type world struct {
	job    Job
	now    time.Time
	view   driver.Job
	epochs []tuning.Epoch // that ended, of all attempts, those that were thrown away among them
	done   int            // epochs whose work counts
	saved  int            // of these, when the present attempt began
	cut    []Cut
	under  tuning.Settings

	doing doing
	since time.Time // the present epoch runs
	until time.Time // what it does ends
	stage stage     // of the intent under way
	move  driver.Intent
	over  map[string]driver.StepKind // how the intents of the past ended
}

func newWorld(job Job) *world {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(job.begins)
	return &world{
		job: job, now: now, until: now.Add(pending), under: job.Own, over: map[string]driver.StepKind{},
		view: driver.Job{ID: "1", Name: job.Workload, Owner: "owner", State: driver.Pending, ExitCode: -1, Fingerprint: "recorded", Submitted: now},
	}
}

// forward lets so much time pass, or, where the controller only watches, as often so much
// as it takes until something happens: meanwhile it would see nothing new. Zero: until then.
func (w *world) forward(step time.Duration, watches bool) {
	to := w.now.Add(step)
	if w.doing != nothing && w.until.After(to) && (watches || step == 0) {
		to = w.until
		if step > 0 {
			n := (w.until.Sub(w.now) + step - 1) / step
			to = w.now.Add(n * step)
		}
	}
	for w.doing != nothing && !w.until.After(to) {
		w.now = w.until
		w.happen()
	}
	w.now = to
}

func (w *world) happen() {
	switch w.doing {
	case waiting:
		w.begin()
	case working:
		w.ended()
	case saving:
		w.leave(driver.Stopped)
		w.stage = left
	case nothing:
	}
}

func (w *world) begin() {
	v := &w.view
	v.Attempt++
	v.State, v.Node = driver.Running, "node-1"
	if v.Started.IsZero() {
		v.Started = w.now
	}
	cause := driver.CauseSubmitted
	if w.move.ID != "" {
		cause = driver.CauseIntent
	}
	v.Attempts = append(v.Attempts, driver.Attempt{
		Number: v.Attempt, Started: w.now, ExitCode: -1, Change: v.Change.Clone(), Cause: cause, Intent: w.move.ID,
	})
	w.under, w.saved = reconcile.SettingsOf(w.job.Policy, w.job.Own, v.Change), w.done
	w.work()
}

// work begins the next epoch. Settings that were never recorded end the job; tables are made
// so that there are none.
func (w *world) work() {
	e, ok := w.job.Epoch(w.view.Attempt, w.done+1, w.under)
	if !ok {
		w.leave(driver.Failed)
		return
	}
	w.doing, w.since, w.until = working, w.now, w.now.Add(e.Length)
}

func (w *world) ended() {
	e, _ := w.job.Epoch(w.view.Attempt, w.done+1, w.under)
	w.done++
	done := tuning.Epoch{
		Number: w.done, Attempt: w.view.Attempt, Start: w.since, End: w.now, Settings: w.under,
		Joules: e.Joules, Loss: e.Loss, Quality: e.Quality, Machine: w.job.Machine,
	}
	if e.Joules != nil {
		done.Source = source
	}
	w.epochs = append(w.epochs, done)
	switch {
	case w.done == w.job.Epochs:
		w.leave(driver.Succeeded)
	case w.stage == asked:
		w.doing, w.until = saving, w.now.Add(w.job.Restart)
	default:
		w.work()
	}
}

// source is where the joules come from.
const source = tuning.Replayed

// leave ends the present attempt, and the job with it where the state is final.
func (w *world) leave(s driver.State) {
	v := &w.view
	v.Attempts[len(v.Attempts)-1].Ended = w.now
	v.State, v.Node, w.doing = s, "", nothing
	if s.Ended() {
		v.Ended = w.now
	}
}

func (w *world) Capabilities() driver.Capabilities {
	return driver.Capabilities{KeepsID: true, Env: true, Cores: true}
}

func (w *world) Get(context.Context, driver.JobID) (driver.Job, error) {
	v := w.view
	v.Attempts = slices.Clone(v.Attempts)
	return v, nil
}

func (w *world) Advance(_ context.Context, in driver.Intent) (driver.Step, error) {
	kind, ok := w.over[in.ID]
	if !ok {
		kind = w.advance(in)
	}
	if kind.Done() {
		w.over[in.ID], w.stage = kind, none
	}
	return driver.Step{Kind: kind, Attempt: w.view.Attempt}, nil
}

func (w *world) advance(in driver.Intent) driver.StepKind {
	v := &w.view
	switch {
	case v.State.Ended():
		return driver.StepFinished
	case w.stage == none && in.Attempt != v.Attempt:
		return driver.StepSuperseded
	case w.stage == none && v.State == driver.Running && in.Discard:
		if w.doing == working {
			w.cut = append(w.cut, Cut{w.under, w.now.Sub(w.since).Seconds() / w.until.Sub(w.since).Seconds()})
		}
		w.done, w.stage = w.saved, left
		w.leave(driver.Stopped)
		return driver.StepCheckpointing
	case w.stage == none && v.State == driver.Running:
		w.stage = asked
		return driver.StepCheckpointing
	case w.stage == none, w.stage == stopped:
		v.Change, w.move, w.stage = in.Change.Clone(), in, changed
		return driver.StepChanged
	case w.stage == left:
		w.stage = stopped
		return driver.StepStopped
	case w.stage == changed:
		w.release()
		return driver.StepStarted
	}
	return driver.StepCheckpointing
}

// release lets the next attempt start: at once, or after its wait.
func (w *world) release() {
	if w.view.Attempt == 0 || w.job.Wait <= 0 {
		w.begin()
		return
	}
	w.view.State, w.doing, w.until = driver.Pending, waiting, w.now.Add(w.job.Wait)
}

// measure is what an exporter would have reported by now.
func (w *world) measure(_ context.Context, q reconcile.MeasureRequest) (reconcile.Measurement, error) {
	m := reconcile.Measurement{Total: w.job.Epochs, Reason: tuning.ReasonWarmingUp, Heard: w.view.Submitted}
	judged := 0
	for _, e := range w.epochs {
		if e.Attempt != q.Attempt {
			continue
		}
		e.Settings = q.Settings
		e.Warmup = len(m.Epochs) < max(1, q.Policy.Profile.WarmupEpochs)
		if !e.Warmup {
			judged++
		}
		m.Epochs = append(m.Epochs, e)
	}
	m.Ended = q.Attempt < w.view.Attempt || w.view.State.Ended()
	switch {
	case judged >= q.Policy.Profile.Epochs, m.Ended && judged > 0:
		m.Reason = tuning.ReasonNone
	case judged > 0:
		m.Reason = tuning.ReasonProfiling
	}
	m.Profile = tuning.Profile{Schema: source, Settings: q.Settings, Machine: w.job.Machine, Epochs: judged}
	if own := w.job.Own[tuning.Cores].Float(); w.job.Busy > 0 && own > 0 && q.Settings.Equal(w.job.Own) {
		m.Profile.Features = map[string]float64{"cpu_utilisation": w.job.Busy / own}
	}
	return m, nil
}
