package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// usual is a job that saves when asked: 12 epochs of 2 s on its four cores.
const usual = "epochs=12 seconds=2 checkpoint=500ms start=500ms"

// inWorld runs f in a bubble with its own world.
func inWorld(t *testing.T, cfg sim.Config, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, err := newWorld(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer w.cluster.Close()
		f(t, w)
	})
}

func (w *world) mustSubmit(t *testing.T, name, behaviour string) driver.JobID {
	t.Helper()
	job, err := w.submit(name, behaviour)
	if err != nil {
		t.Fatal(err)
	}
	return job.ID
}

// end drives a job to its end, checks what always holds, and returns its record
// and the scheduler's view.
func (w *world) end(t *testing.T, id driver.JobID) (*reconcile.Record, driver.Job) {
	t.Helper()
	if err := w.drive(id); err != nil {
		t.Fatal(err)
	}
	for _, text := range w.wrong(id) {
		t.Error(text)
	}
	rec, err := w.records.Load(w.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	job, err := w.cluster.Get(w.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return rec, job
}

// until looks at a job until its record is as wanted.
func (w *world) until(t *testing.T, id driver.JobID, wanted func(r *reconcile.Record) bool) *reconcile.Record {
	t.Helper()
	for range 1000 {
		if err := w.look(id); err != nil {
			t.Fatal(err)
		}
		if r, err := w.records.Load(w.ctx, id); err == nil && wanted(r) {
			return r
		}
	}
	t.Fatal("the job never came there")
	return nil
}

func hold(r tuning.Reason) tuning.Decision { return tuning.Decision{Action: tuning.Hold, Reason: r} }

// probeThenMove probes two cores once, then moves to one.
func probeThenMove(s tuning.State) tuning.Decision {
	switch {
	case s.Pending || s.Measured != tuning.ReasonNone:
		return hold(tuning.ReasonProfiling)
	case s.Probes == 0:
		return tuning.Decision{Action: tuning.Probe, Reason: tuning.ReasonUnknownProbe, Settings: cores(2)}
	case s.Restarts == 0:
		return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonProbeWon, Settings: cores(1)}
	}
	return hold(tuning.ReasonProbesDone)
}

func TestAJobIsProbedAndMovedWithOneAttemptEach(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = probeThenMove
		id := w.mustSubmit(t, "train", usual)
		rec, job := w.end(t, id)
		if len(job.Attempts) != 3 || job.State != driver.Succeeded || len(rec.Probed) != 1 || len(rec.Restarts) != 1 {
			t.Errorf("%d attempts, %s, %d probes, %d restarts; want 3, succeeded, 1, 1",
				len(job.Attempts), job.State, len(rec.Probed), len(rec.Restarts))
		}
		if got := rec.Settings(3); !got.Equal(cores(1)) {
			t.Errorf("it ended under %s, want one core", got)
		}
		if len(w.audits) != 2 || len(w.lessons) != 1 || w.lessons[0].Job != string(id) {
			t.Errorf("%d audit entries, lessons %+v; want 2 and one of this job", len(w.audits), w.lessons)
		}
		if got := w.audits[0]; !got.Before.Equal(cores(4)) || !got.After.Equal(cores(2)) || got.Action != string(tuning.Probe) {
			t.Errorf("the first audit entry is %+v", got)
		}
		for _, e := range rec.Epochs {
			if want := rec.Settings(e.Attempt); !e.Settings.Equal(want) {
				t.Errorf("epoch %d of attempt %d is under %s, want %s", e.Number, e.Attempt, e.Settings, want)
			}
		}
	})
}

func TestReconcileIsHarmlessHoweverOften(t *testing.T) {
	t.Parallel()
	for _, times := range []int{1, 2, 5} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			w.decide = probeThenMove
			id := w.mustSubmit(t, "train", usual)
			for range 150 {
				for range times {
					if _, err := w.loop.Reconcile(w.ctx, id); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(200 * time.Millisecond)
			}
			rec, job := w.end(t, id)
			if len(job.Attempts) != 3 || len(rec.Probed) != 1 || len(rec.Restarts) != 1 {
				t.Errorf("looked at %d times at once: %d attempts, %d probes, %d restarts; want 3, 1, 1",
					times, len(job.Attempts), len(rec.Probed), len(rec.Restarts))
			}
			before := w.records.saves
			for range 10 {
				if _, err := w.loop.Reconcile(w.ctx, id); err != nil {
					t.Fatal(err)
				}
			}
			if w.records.saves != before || len(w.lessons) != 1 {
				t.Errorf("a job that is over was written %d times more, with %d lessons", w.records.saves-before, len(w.lessons))
			}
		})
	}
}

func TestAHoldForeverWritesNothingUntilTuningIsSwitchedOff(t *testing.T) {
	t.Parallel()
	for _, reason := range []tuning.Reason{tuning.ReasonPaused, tuning.ReasonSiteCap, tuning.ReasonRecommend, tuning.ReasonNoCheckpoint} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			w.decide = func(tuning.State) tuning.Decision { return hold(reason) }
			id := w.mustSubmit(t, "train", "epochs=200 seconds=2 checkpoint=500ms")
			w.until(t, id, func(r *reconcile.Record) bool { return r.Phase == reconcile.Held || r.Phase == reconcile.Settled })
			entries := len(w.until(t, id, func(*reconcile.Record) bool { return true }).History)
			for range 100 {
				if err := w.look(id); err != nil {
					t.Fatal(err)
				}
			}
			rec, err := w.records.Load(w.ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			if len(rec.History) > entries+3 {
				t.Errorf("held for %s: the history grew from %d to %d entries in 100 looks", reason, entries, len(rec.History))
			}
			w.gate = tuning.ReasonOff
			w.until(t, id, func(r *reconcile.Record) bool { return r.Reason == tuning.ReasonOff })
		})
	}
}

func TestAHoldByTheFirstEpochsIsReconsideredAsTheirNumberDoubles(t *testing.T) {
	t.Parallel()
	for reason, again := range map[tuning.Reason]bool{tuning.ReasonTooShort: true, tuning.ReasonNoCheckpoint: false} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			var asked []int
			w.decide = func(s tuning.State) tuning.Decision {
				if s.Pending || s.Measured != tuning.ReasonNone || s.EpochsDone < 20 {
					if n := len(asked); s.Measured == tuning.ReasonNone && (n == 0 || asked[n-1] != s.EpochsDone) {
						asked = append(asked, s.EpochsDone)
					}
					return hold(reason)
				}
				if s.Current.Equal(s.Own) {
					return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonClassKnown, Settings: cores(2)}
				}
				return hold(tuning.ReasonAlreadyBest)
			}
			_, job := w.end(t, w.mustSubmit(t, "train", "epochs=60 seconds=2 checkpoint=500ms"))
			if moved := len(job.Attempts) > 1; moved != again || len(asked) > 5 {
				t.Errorf("%s: %d attempts, asked after %v epochs; want it moved: %v", reason, len(job.Attempts), asked, again)
			}
		})
	}
}

func TestDecisionsToHoldNeverReachTheScheduler(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		reason tuning.Reason
		advice tuning.Settings
	}{
		{"observe mode", tuning.ReasonObserveMode, nil},
		{"recommend mode", tuning.ReasonRecommend, cores(2)},
		{"a dry run", tuning.ReasonDryRun, cores(2)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.decide = func(tuning.State) tuning.Decision {
					d := hold(tc.reason)
					d.Advice = tc.advice
					return d
				}
				rec, job := w.end(t, w.mustSubmit(t, "train", usual))
				if len(w.audits) > 0 || slices.ContainsFunc(w.trace, func(s string) bool { return strings.Contains(s, "advance") }) {
					t.Errorf("effects: %q", w.trace)
				}
				if len(job.Attempts) != 1 || rec.Reason != tc.reason {
					t.Errorf("%d attempts, reason %s; want 1, %s", len(job.Attempts), rec.Reason, tc.reason)
				}
				advised := slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool {
					return e.Decision != nil && e.Decision.Advice.Equal(tc.advice)
				})
				if tc.advice != nil && !advised {
					t.Error("the advice is not in the history")
				}
			})
		})
	}
}
