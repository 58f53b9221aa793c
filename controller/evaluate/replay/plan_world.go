package replay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// pending is how long a job waits for its first start, so that the controller sees it
// before that.
const pending = time.Second

// world is a scheduler with one job, the exporter of its node and the controller's store, at
// an instant that only forward moves.
type world struct {
	job    Job
	now    time.Time
	view   driver.Job
	record *reconcile.Record // nil: the controller stored none yet
	epochs []tuning.Epoch    // that ended, of all attempts, those that were thrown away among them
	done   int               // epochs whose work counts
	saved  int               // of these, when the present attempt began
	cut    []Cut
	under  tuning.Settings

	since time.Time // the present epoch runs
	until time.Time // next happens
	next  func()    // nil: nothing does, since the job left or ended

	move driver.Intent   // the last
	step driver.StepKind // of the intent under way; empty: none
}

func newWorld(job Job) *world {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(job.begins)
	w := &world{
		job: job, now: now, until: now.Add(pending), under: job.Own,
		view: driver.Job{ID: "1", Name: job.Workload, Owner: "owner", State: driver.Pending, ExitCode: -1, Fingerprint: "recorded", Submitted: now},
	}
	w.next = w.begin
	return w
}

// forward lets so much time pass, or, where the controller only watches, as often so much
// as it takes until something happens: meanwhile it would see nothing new. Zero: until then.
func (w *world) forward(step time.Duration, watches bool) {
	to := w.now.Add(step)
	if w.next != nil && w.until.After(to) && (watches || step == 0) {
		to = w.until
		if step > 0 {
			n := (w.until.Sub(w.now) + step - 1) / step
			to = w.now.Add(n * step)
		}
	}
	for w.next != nil && !w.until.After(to) {
		w.now = w.until
		w.next()
	}
	w.now = to
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
	w.next, w.since, w.until = func() { w.ended(e) }, w.now, w.now.Add(e.End.Sub(e.Start))
}

func (w *world) ended(e tuning.Epoch) {
	w.done++
	e.Start, e.End = w.since, w.now
	w.epochs = append(w.epochs, e)
	switch {
	case w.done == w.job.Epochs:
		w.leave(driver.Succeeded)
	case w.saves():
		w.next, w.until = func() { w.leave(driver.Stopped) }, w.now.Add(w.job.Restart)
	default:
		w.work()
	}
}

// leave ends the present attempt, and the job with it where the state is final.
func (w *world) leave(s driver.State) {
	v := &w.view
	v.Attempts[len(v.Attempts)-1].Ended = w.now
	v.State, v.Node, w.next = s, "", nil
	if s.Ended() {
		v.Ended = w.now
	}
}

// saves reports whether the job was asked to leave.
func (w *world) saves() bool { return w.step == driver.StepCheckpointing }

func (w *world) Get(context.Context, driver.JobID) (driver.Job, error) {
	v := w.view
	v.Attempts = slices.Clone(v.Attempts)
	return v, nil
}

// Advance takes the steps in the order of package sim.
func (w *world) Advance(_ context.Context, in driver.Intent) (driver.Step, error) {
	v := &w.view
	switch {
	case v.State.Ended():
		w.step = driver.StepFinished
	case w.step == "" && v.State == driver.Running:
		w.step = driver.StepCheckpointing
		if in.Discard {
			w.cut = append(w.cut, Cut{w.under, w.now.Sub(w.since).Seconds() / w.until.Sub(w.since).Seconds()})
			w.done = w.saved
			w.leave(driver.Stopped)
		}
	case w.saves() && v.State == driver.Stopped:
		w.step = driver.StepStopped
	case w.saves():
	case w.step == driver.StepChanged:
		w.step = driver.StepStarted
		if v.Attempt == 0 || w.job.Wait <= 0 {
			w.begin()
		} else {
			v.State, w.next, w.until = driver.Pending, w.begin, w.now.Add(w.job.Wait)
		}
	default:
		v.Change, w.move, w.step = in.Change.Clone(), in, driver.StepChanged
	}
	step := driver.Step{Kind: w.step, Attempt: v.Attempt}
	if w.step.Done() {
		w.step = ""
	}
	return step, nil
}

func (w *world) Load(context.Context, driver.JobID) (*reconcile.Record, error) {
	if w.record == nil {
		return nil, reconcile.ErrNoRecord
	}
	return w.record, nil
}

func (w *world) Save(_ context.Context, r *reconcile.Record) error {
	w.record = r
	return nil
}

func (w *world) All(context.Context) ([]*reconcile.Record, error) {
	return []*reconcile.Record{w.record}, nil
}

// measure is what an exporter would have reported by now.
func (w *world) measure(_ context.Context, q reconcile.MeasureRequest) (reconcile.Measurement, error) {
	m := reconcile.Measurement{Total: w.job.Epochs, Reason: tuning.ReasonWarmingUp, Heard: w.view.Submitted}
	m.Epochs = evaluate.Only(w.epochs, func(e tuning.Epoch) bool { return e.Attempt == q.Attempt })
	warmup := max(1, q.Policy.Profile.WarmupEpochs)
	for i := range m.Epochs {
		m.Epochs[i].Settings, m.Epochs[i].Warmup = q.Settings, i < warmup
	}
	judged := max(0, len(m.Epochs)-warmup)
	m.Ended = q.Attempt < w.view.Attempt || w.view.State.Ended()
	switch {
	case judged >= q.Policy.Profile.Epochs, m.Ended && judged > 0:
		m.Reason = tuning.ReasonNone
	case judged > 0:
		m.Reason = tuning.ReasonProfiling
	}
	m.Profile = tuning.Profile{Schema: tuning.Replayed, Settings: q.Settings, Machine: w.job.Machine, Epochs: judged}
	if own := w.job.Own[tuning.Cores].Float(); w.job.Busy > 0 && own > 0 && q.Settings.Equal(w.job.Own) {
		m.Profile.Features = map[string]float64{"cpu_utilisation": w.job.Busy / own}
	}
	return m, nil
}

// Course is how a job went.
type Course struct {
	Record   *reconcile.Record // of the controller at the job's end
	Under    []tuning.Settings // by epoch, those that were thrown away among them
	Cut      []Cut             // epochs that were thrown away before they ended
	Restarts int               // that the controller brought about
	Probes   int               // of these
}

// Cut is a part of an epoch that was thrown away.
type Cut struct {
	Settings tuning.Settings
	Share    float64 // of the epoch, 0 to 1
}

// looks is how often the controller looks, within an epoch, at a job that runs under other
// settings than its owner's.
const looks = 8

// Replay lets the controller tune a job from its submission to its end.
func Replay(ctx context.Context, job Job) (Course, error) {
	return replay(ctx, job, reconcile.DefaultStages(), &site{})
}

// replay does so with given stages, at a site that knows the job's earlier runs and learns
// from this one.
func replay(ctx context.Context, job Job, s reconcile.Stages, at *site) (Course, error) {
	w := newWorld(job)
	loop := reconcile.New(reconcile.Config{
		Scheduler: w, Records: w, Services: w.services(at), Stages: s, Log: slog.New(slog.DiscardHandler),
		RestartCost: job.Restart, Now: func() time.Time { return w.now },
	})
	// The controller looks at a job a few times an epoch, and more often while it moves it.
	for range 100 * (job.Epochs + 100) {
		again, err := loop.Reconcile(ctx, w.view.ID)
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return Course{}, fmt.Errorf("replay %s: %w", job.Workload, err)
		}
		phase := w.record.Phase
		if phase.Over() {
			break
		}
		// Away from its owner's settings it is watched within its epochs too.
		away := w.view.State == driver.Running && !w.under.Equal(job.Own) && phase != reconcile.Changing
		if away {
			again = max(again, w.until.Sub(w.since)/looks)
		}
		w.forward(again, w.saves() || phase != reconcile.Changing && !away)
	}
	if w.view.State != driver.Succeeded || !w.record.Phase.Over() {
		return Course{}, fmt.Errorf("replay %s: the job does not end: under %s it is %s and %s", job.Workload, w.under, w.view.State, w.record.Phase)
	}
	under := tuning.Each(w.epochs, func(e tuning.Epoch) tuning.Settings { return e.Settings })
	return Course{Record: w.record, Under: under, Restarts: w.view.Attempt - 1, Probes: len(w.record.Probed), Cut: w.cut}, nil
}

// services are the world's, with what the site knows of such jobs.
func (w *world) services(at *site) reconcile.Services {
	return reconcile.Services{
		Read: func(context.Context, driver.Job) reconcile.Reading {
			return reconcile.Reading{
				Policy: w.job.Policy, Own: w.job.Own,
				Kind: tuning.JobKind{Owner: w.view.Owner, Name: w.view.Name, Fingerprint: w.view.Fingerprint},
			}
		},
		Site:     func(driver.Job) tuning.Site { return w.job.Site },
		Measure:  w.measure,
		Classify: func(tuning.Profile) tuning.Class { return tuning.Class{Reason: tuning.ReasonNoModel} },
		Recall: func(_ context.Context, q reconcile.Question) (reconcile.Recollection, error) {
			return q.Recall(at.seen, true, w.now), nil
		},
		Past: func(_ context.Context, kind tuning.JobKind) ([]tuning.PastRun, error) {
			return knowledge.PastRuns(at.seen, kind, w.now), nil
		},
		Step: func(ctx context.Context, in driver.Intent) (driver.Step, tuning.Reason, error) {
			return reconcile.Step(ctx, w, in)
		},
		Learn: func(_ context.Context, o knowledge.Observation, _ string) error {
			o.Machine, o.Profiles, o.Peak = w.job.Machine, nil, 0
			at.seen = append(at.seen, o)
			return nil
		},
		Gate: func(driver.Job) tuning.Reason { return tuning.ReasonNone },
		Outlook: func(context.Context, driver.JobID) (driver.Outlook, error) {
			return driver.Outlook{Wait: &w.job.Wait}, nil
		},
		Pause:   func(context.Context, string) error { return nil },
		Cleared: func() time.Time { return time.Time{} },
		Audit:   func(context.Context, reconcile.Audit) error { return nil },
	}
}

// site is what the runs of one job taught so far, as the controller keeps it. Classes are not
// among it: tables of trials have no profiles.
type site struct{ seen []knowledge.Observation }
