package reconcile_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// played is a scheduler that reports its one job as a test wants.
type played struct {
	*sim.Cluster
	job driver.Job
}

func (p *played) Get(context.Context, driver.JobID) (driver.Job, error) { return p.job, nil }

// is puts the job into a state with so many attempts; those after the first so many
// belong to the intent.
func (p *played) is(state driver.State, attempts, owners int, intent string) {
	p.job.State, p.job.Attempt, p.job.Attempts = state, attempts, nil
	for n := 1; n <= attempts; n++ {
		a := driver.Attempt{Number: n, Started: p.job.Submitted.Add(time.Duration(n) * time.Second), ExitCode: -1, Cause: driver.CauseSubmitted}
		if n > owners {
			a.Cause, a.Intent, a.Change = driver.CauseIntent, intent, driver.Change{Cores: 2}
		}
		p.job.Attempts = append(p.job.Attempts, a)
	}
	if state.Ended() {
		p.job.Ended = p.job.Submitted.Add(time.Hour)
	}
}

// Every attempt after the first is counted once, as a restart or as a probe, however the
// change and the moment in which the job begins or ends come together.
func TestEachAttemptBehindTheFirstIsCountedOnce(t *testing.T) {
	t.Parallel()
	const soon = time.Millisecond
	type scene struct {
		state            driver.State
		attempts, owners int
		step             driver.Step // the answer to the intent after that
		reason           tuning.Reason
	}
	changed := driver.Step{Kind: driver.StepChanged}
	for _, c := range []struct {
		name             string
		action           tuning.Action // of a running job; hold: a waiting one is recalled
		scenes           []scene
		restarts, probes int
	}{
		{"a job that waits is changed", tuning.Hold, []scene{
			{driver.Pending, 0, 0, changed, ""},
			{driver.Pending, 0, 0, driver.Step{Kind: driver.StepStarted}, ""},
			{driver.Running, 1, 0, driver.Step{}, ""},
		}, 0, 0},
		{"a job that waits is changed, and its owner changes it back", tuning.Hold, []scene{
			{driver.Pending, 0, 0, changed, ""},
			{driver.Pending, 0, 0, driver.Step{Kind: driver.StepStarted}, ""},
			{driver.Running, 1, 1, driver.Step{}, ""},
		}, 0, 0},
		{"the change meets the moment in which it begins", tuning.Hold, []scene{
			{driver.Pending, 0, 0, changed, ""},
			{driver.Running, 1, 1, changed, ""},
			{driver.Running, 2, 1, driver.Step{Kind: driver.StepStarted, Attempt: 2}, ""},
			{driver.Running, 2, 1, driver.Step{}, ""},
		}, 1, 0},
		{"the change meets that moment, and the next attempt waits for room", tuning.Hold, []scene{
			{driver.Pending, 0, 0, changed, ""},
			{driver.Pending, 1, 1, driver.Step{Kind: driver.StepStarted, Attempt: 1}, ""},
			{driver.Running, 2, 1, driver.Step{}, ""},
		}, 1, 0},
		{"the change meets that moment, and no one asks before it has ended", tuning.Hold, []scene{
			{driver.Pending, 0, 0, changed, ""},
			{driver.Succeeded, 2, 1, driver.Step{}, ""},
		}, 1, 0},
		{"the change meets that moment, and its intent is given up", tuning.Hold, []scene{
			{driver.Pending, 0, 0, driver.Step{Kind: driver.StepSuperseded, Attempt: 1}, tuning.ReasonOwnerChanged},
			{driver.Running, 1, 1, driver.Step{}, ""},
			{driver.Running, 2, 1, driver.Step{}, ""},
		}, 1, 0},
		{"a job is moved and ends before anybody asks", tuning.Move, []scene{
			{driver.Running, 1, 1, changed, ""},
			{driver.Succeeded, 2, 1, driver.Step{}, ""},
		}, 1, 0},
		{"a job is probed and ends before anybody asks", tuning.Probe, []scene{
			{driver.Running, 1, 1, changed, ""},
			{driver.Succeeded, 2, 1, driver.Step{}, ""},
		}, 0, 1},
		{"a job is moved", tuning.Move, []scene{
			{driver.Running, 1, 1, changed, ""},
			{driver.Running, 2, 1, driver.Step{Kind: driver.StepStarted, Attempt: 2}, ""},
			{driver.Running, 2, 1, driver.Step{}, ""},
		}, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, err := newWorld(t.Context(), sim.Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer w.cluster.Close()
				p := &played{Cluster: w.cluster, job: driver.Job{
					ID: "1", Name: "train", Owner: "alice", Fingerprint: "f", Submitted: time.Now(), ExitCode: -1, Resources: driver.Resources{Cores: 4},
				}}
				var now scene
				var intent string // that was begun
				w.decide = func(s tuning.State) tuning.Decision {
					d := hold(tuning.ReasonAlreadyBest)
					switch {
					case intent != "":
					case c.action != tuning.Hold && !s.Pending:
						d.Action = c.action
					case c.action == tuning.Hold && s.Pending:
						d.Action = tuning.Move
					}
					if d.Action != tuning.Hold {
						d.Reason, d.Settings = tuning.ReasonRecalled, cores(2)
					}
					return d
				}
				services := w.services()
				services.Measure = func(context.Context, reconcile.MeasureRequest) (reconcile.Measurement, error) {
					return reconcile.Measurement{Profile: tuning.Profile{Schema: "test/1"}}, nil
				}
				services.Step = func(_ context.Context, in driver.Intent) (driver.Step, tuning.Reason, error) {
					intent = in.ID
					if now.step.Kind == "" {
						return driver.Step{}, "", errInjected
					}
					return now.step, now.reason, nil
				}
				w.loop = reconcile.New(reconcile.Config{
					Scheduler: p, Records: w.records, Queue: idle{}, Services: services, Stages: w.stages(), Log: slog.New(slog.DiscardHandler),
				})
				for i, next := range c.scenes {
					now = next
					p.is(now.state, now.attempts, now.owners, intent)
					for range 6 { // seen, profiled, decided, stepped
						_, err := w.loop.Reconcile(t.Context(), "1")
						time.Sleep(soon)
						if rec, lerr := w.records.Load(t.Context(), "1"); err == nil && lerr == nil && i == 0 && rec.Move != nil && rec.Move.Step == now.step.Kind {
							break
						}
					}
				}
				rec, err := w.records.Load(t.Context(), "1")
				if err != nil {
					t.Fatal(err)
				}
				last := c.scenes[len(c.scenes)-1]
				under := cores(2)
				if last.attempts == last.owners {
					under = cores(4)
				}
				if !rec.Settings(last.attempts).Equal(under) || rec.Phase == reconcile.Verifying && last.attempts == last.owners {
					t.Errorf("it is %s under %s, want %s", rec.Phase, rec.Settings(last.attempts), under)
				}
				if len(rec.Restarts) != c.restarts || len(rec.Probed) != c.probes || len(rec.Restarts)+len(rec.Probed) != last.attempts-1 {
					t.Errorf("%s: %d restarts and %d probes of %d attempts; want %d and %d", fmt.Sprint(rec.Phase), len(rec.Restarts), len(rec.Probed), last.attempts, c.restarts, c.probes)
				}
			})
		})
	}
}
