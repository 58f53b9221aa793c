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
	"pitchpipe/driver/sim"
)

// usual is a job that saves when asked: 12 epochs of 2 s on its four cores.
const usual = "epochs=12 seconds=2 checkpoint=500ms start=500ms"

// inWorld runs f in a bubble with a world of its own.
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

func TestAHoldForeverWritesNothing(t *testing.T) {
	t.Parallel()
	for _, reason := range []tuning.Reason{tuning.ReasonPaused, tuning.ReasonSiteCap, tuning.ReasonRecommend} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			w.decide = func(tuning.State) tuning.Decision { return hold(reason) }
			id := w.mustSubmit(t, "train", "epochs=200 seconds=2 checkpoint=500ms")
			w.until(t, id, func(r *reconcile.Record) bool { return r.Phase == reconcile.Held })
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

func TestWhatCannotBeAuditedIsNotDone(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = probeThenMove
		w.auditFails = true
		rec, job := w.end(t, w.mustSubmit(t, "train", usual))
		if len(job.Attempts) != 1 || len(rec.Probed) != 0 || slices.ContainsFunc(w.trace, func(s string) bool { return strings.Contains(s, "advance") }) {
			t.Errorf("%d attempts, %d probes, trace %q; want nothing done", len(job.Attempts), len(rec.Probed), w.trace)
		}
	})
}

func TestWhatCannotBeSavedIsNotDone(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = probeThenMove
		w.records.before = func(r *reconcile.Record) error {
			if r.Move != nil {
				return errInjected
			}
			return nil
		}
		_, job := w.end(t, w.mustSubmit(t, "train", usual))
		if len(job.Attempts) != 1 || slices.ContainsFunc(w.trace, func(s string) bool { return strings.Contains(s, "advance") }) {
			t.Errorf("%d attempts, trace %q; want nothing done", len(job.Attempts), w.trace)
		}
	})
}

func TestADecisionThatNoDriverCanCarryOutFailsOurHandlingNotTheJob(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(s tuning.State) tuning.Decision {
			if s.Pending {
				return hold(tuning.ReasonFirstSeen)
			}
			return tuning.Decision{Action: tuning.Move, Settings: tuning.Settings{"colour": tuning.Word("red")}}
		}
		rec, job := w.end(t, w.mustSubmit(t, "train", usual+" owner_changes_at=12s"))
		if job.State != driver.Succeeded || !slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool { return e.To == reconcile.Failed }) {
			t.Errorf("the job is %s, its history %+v; want succeeded and failed", job.State, rec.History)
		}
	})
}

func TestAJobThatWaitsForRoomBetweenTwoAttemptsIsLeftAlone(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n", Cores: 4, MemoryBytes: 1 << 30}}}, func(t *testing.T, w *world) {
		w.decide = probeThenMove
		id := w.mustSubmit(t, "train", usual)
		w.until(t, id, func(r *reconcile.Record) bool { return r.Phase == reconcile.Probing })
		w.read = func(j driver.Job) reconcile.Reading {
			return reconcile.Reading{Reason: tuning.ReasonNoStanza, Own: own(j)}
		}
		w.mustSubmit(t, "filler", "epochs=10 seconds=6")
		rec, job := w.end(t, id)
		if len(rec.Probed) != 1 || len(job.Attempts) != 3 {
			t.Errorf("%d probes, %d attempts; want 1 and 3: a waiting job has nothing to decide by", len(rec.Probed), len(job.Attempts))
		}
		if i := slices.IndexFunc(rec.Runs, func(r reconcile.Run) bool { return r.Attempt == 2 }); i < 0 || rec.Runs[i].Action != tuning.Probe {
			t.Errorf("the second attempt is not known as a probe: %+v", rec.Runs)
		}
	})
}

func TestAnAttemptThatWasNotOursIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.policy.Knobs = append(w.policy.Knobs, tuning.Knob{Name: tuning.Memory, Min: tuning.Number(1 << 20), Max: tuning.Number(1 << 40)})
		small := cores(2).With(tuning.Memory, tuning.Number(1<<20))
		w.decide = func(s tuning.State) tuning.Decision {
			if s.Pending {
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: small}
			}
			if s.Measured != tuning.ReasonNone {
				return hold(tuning.ReasonProfiling)
			}
			return hold(tuning.ReasonAlreadyBest)
		}
		rec, job := w.end(t, w.mustSubmit(t, "train", usual+" memory=64MiB"))
		if len(job.Attempts) != 2 || job.Attempts[1].Cause != driver.CauseMemory || job.State != driver.Succeeded {
			t.Fatalf("attempts %+v, %s; want a second one with the owner's memory", job.Attempts, job.State)
		}
		if len(rec.Hurt) != 1 || !rec.Hurt[0].Equal(small) || len(w.lessons) != 1 || len(w.lessons[0].Regressed) == 0 {
			t.Errorf("hurt by %v, lessons %+v; want the small memory remembered", rec.Hurt, w.lessons)
		}
		looks := 0
		for _, e := range rec.History {
			if e.Trigger == reconcile.LookAgain {
				looks++
			}
		}
		if looks != 1 {
			t.Errorf("looked again %d times, want once", looks)
		}
	})
}

func TestAJobThatDoesNotSaveInTimeRunsOnAndIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = probeThenMove
		rec, job := w.end(t, w.mustSubmit(t, "train", "epochs=30 seconds=2 ignore_signal=true"))
		if len(job.Attempts) != 1 || job.State != driver.Succeeded || rec.Reason != tuning.ReasonGraceExpired {
			t.Errorf("%d attempts, %s, reason %s; want 1, succeeded, grace-expired", len(job.Attempts), job.State, rec.Reason)
		}
		if len(w.audits) != 1 || len(rec.Probed) != 0 {
			t.Errorf("%d intents, %d probes; want one intent that came to nothing", len(w.audits), len(rec.Probed))
		}
	})
}
