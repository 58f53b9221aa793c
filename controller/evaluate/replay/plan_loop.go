package replay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// ErrStuck means that a job does not come to its end: a fault of the replay.
var ErrStuck = errors.New("the job does not come to its end")

// Course is how a job went.
type Course struct {
	Choices  []Choice          // of the controller, in order
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

// Choice is one decision of the controller, or one verdict on what it did.
type Choice struct {
	Done     int             `json:"done"`   // epochs that had ended then
	Action   tuning.Action   `json:"action"` // empty: a verdict
	Reason   tuning.Reason   `json:"reason"`
	Settings tuning.Settings `json:"settings,omitempty"`
	Verdict  tuning.Verdict  `json:"verdict,omitempty"`
}

// Choices are those of a job's record.
func Choices(r *reconcile.Record) []Choice {
	var out []Choice
	for _, e := range r.History {
		c := Choice{}
		for _, x := range r.Epochs {
			if !x.End.After(e.At) {
				c.Done = max(c.Done, x.Number)
			}
		}
		switch {
		case e.Decision != nil:
			c.Action, c.Reason, c.Settings = e.Decision.Action, e.Decision.Reason, e.Decision.Settings
		case e.Outcome != nil && e.Trigger == reconcile.OutcomeKnown:
			c.Reason, c.Settings, c.Verdict = e.Outcome.Reason, e.Outcome.Tuned, e.Outcome.Verdict
		default:
			continue
		}
		out = append(out, c)
	}
	return out
}

// looks is how often within an epoch a job is looked at that runs under other settings than
// its owner's.
const looks = 8

// Replay lets the controller tune a job from its submission to its end.
func Replay(ctx context.Context, job Job) (Course, error) {
	return replayAt(ctx, job, &site{})
}

// replayAt does so at a site that knows the job's earlier runs, and learns from this one.
func replayAt(ctx context.Context, job Job, s *site) (Course, error) {
	return replay(ctx, job, reconcile.DefaultStages(), s)
}

// replay does so with other stages than the default.
func replay(ctx context.Context, job Job, s reconcile.Stages, at *site) (Course, error) {
	w := newWorld(job)
	records := &memory{}
	loop := reconcile.New(reconcile.Config{
		Scheduler: w, Records: records, Services: w.services(at), Stages: s, Log: slog.New(slog.DiscardHandler),
		RestartCost: job.Restart, Now: func() time.Time { return w.now },
	})
	// A job is looked at a few times an epoch, and more often while it is moved.
	for range 100 * (job.Epochs + 100) {
		if err := ctx.Err(); err != nil {
			return Course{}, fmt.Errorf("replay %s: %w", job.Workload, err)
		}
		again, err := loop.Reconcile(ctx, w.view.ID)
		if err != nil {
			return Course{}, fmt.Errorf("replay %s: %w", job.Workload, err)
		}
		if records.one.Phase.Over() {
			return course(w, records.one)
		}
		// Away from its owner's settings it is watched within its epochs too.
		away := w.doing == working && !w.under.Equal(w.job.Own) && records.one.Phase != reconcile.Changing
		if away {
			again = max(again, w.until.Sub(w.since)/looks)
		}
		w.forward(again, w.stage == asked || records.one.Phase != reconcile.Changing && !away)
	}
	return Course{}, fmt.Errorf("replay %s: %w: it is %s", job.Workload, ErrStuck, records.one.Phase)
}

func course(w *world, r *reconcile.Record) (Course, error) {
	if w.view.State != driver.Succeeded {
		return Course{}, fmt.Errorf("replay %s: %w: under %s it is %s", w.job.Workload, ErrStuck, w.under, w.view.State)
	}
	c := Course{Choices: Choices(r), Restarts: w.view.Attempt - 1, Probes: len(r.Probed), Cut: w.cut}
	for _, e := range w.epochs {
		c.Under = append(c.Under, e.Settings)
	}
	return c, nil
}

// services are the world's, with what the site knows of such jobs.
func (w *world) services(at *site) reconcile.Services {
	var s reconcile.Services
	s.Read = func(context.Context, driver.Job) reconcile.Reading {
		return reconcile.Reading{
			Policy: w.job.Policy, Own: w.job.Own,
			Kind: tuning.JobKind{Owner: w.view.Owner, Name: w.view.Name, Fingerprint: w.view.Fingerprint},
		}
	}
	s.Site = func(driver.Job) tuning.Site { return w.job.Site }
	s.Measure = w.measure
	s.Classify = func(tuning.Profile) tuning.Class { return tuning.Class{Reason: tuning.ReasonNoModel} }
	s.Recall = func(_ context.Context, q reconcile.Question) (reconcile.Recollection, error) {
		return at.recall(w.now, q), nil
	}
	s.Past = func(_ context.Context, kind tuning.JobKind) ([]tuning.PastRun, error) {
		return at.past(w.now, kind), nil
	}
	s.Step = func(ctx context.Context, in driver.Intent) (driver.Step, tuning.Reason, error) {
		return reconcile.Step(ctx, w, in)
	}
	s.Learn = func(_ context.Context, o knowledge.Observation, _ string) error {
		at.learn(w.job.Machine, o)
		return nil
	}
	s.Gate = func(driver.Job) tuning.Reason { return tuning.ReasonNone }
	s.Outlook = w.outlook
	s.Pause = func(context.Context, string) error { return nil }
	s.Cleared = func() time.Time { return time.Time{} }
	s.Audit = func(context.Context, reconcile.Audit) error { return nil }
	return s
}

// memory keeps the record of the one job.
type memory struct{ one *reconcile.Record }

// Load implements reconcile.Records.
func (m *memory) Load(context.Context, driver.JobID) (*reconcile.Record, error) {
	if m.one == nil {
		return nil, reconcile.ErrNoRecord
	}
	return m.one, nil
}

// Save implements reconcile.Records.
func (m *memory) Save(_ context.Context, r *reconcile.Record) error {
	m.one = r
	return nil
}

// All implements reconcile.Records.
func (m *memory) All(context.Context) ([]*reconcile.Record, error) {
	return []*reconcile.Record{m.one}, nil
}
