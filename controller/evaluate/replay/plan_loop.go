package replay

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

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

// looks is how often within an epoch a job is looked at that runs under other settings than
// its owner's.
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
	// A job is looked at a few times an epoch, and more often while it is moved.
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
			return at.recall(w.now, q), nil
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

// site is what the runs of one job taught so far, as the controller keeps and derives it.
// Classes are not among it: tables of trials have no profiles.
type site struct{ seen []knowledge.Observation }

// recall is what the controller's stages answer from the same observations.
func (s *site) recall(now time.Time, q reconcile.Question) reconcile.Recollection {
	m := q.Policy.Measure()
	out := reconcile.Recollection{
		Knowledge: tuning.Knowledge{
			KindEffects: knowledge.Effects(s.seen, q.Asker(), m, now),
			Carried:     knowledge.Carried(s.seen, q.Asker(), m, now),
			Regressed:   knowledge.Regressions(s.seen, q.Kind),
		},
	}
	out.KindSeconds, out.KindRuns = knowledge.KindSeconds(s.seen, q.Asker())
	out.RestartCost, _ = knowledge.RestartCost(s.seen, q.Kind)
	if last, ok := knowledge.LastReference(s.seen, q.Kind); ok {
		out.Reference = &last
	}
	return out
}
