package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// together looks at several jobs in turn until all are over.
func (w *world) together(t *testing.T, ids ...driver.JobID) (tuned []int) {
	t.Helper()
	most := make([]int, 2) // most at a time, and restarts in all
	for range 4000 {
		now, over := 0, 0
		for _, id := range ids {
			if _, err := w.loop.Reconcile(w.ctx, id); err != nil {
				t.Fatal(err)
			}
			r, err := w.records.Load(w.ctx, id)
			if err != nil {
				continue
			}
			switch {
			case r.Phase.Over():
				over++
			case r.Phase == reconcile.Changing || len(r.Probed)+len(r.Restarts) > 0:
				now++
			}
		}
		most[0] = max(most[0], now)
		if over == len(ids) {
			for _, id := range ids {
				r, err := w.records.Load(w.ctx, id)
				if err != nil {
					t.Fatal(err)
				}
				most[1] += len(r.Probed) + len(r.Restarts)
				for _, text := range w.wrong(id) {
					t.Error(text)
				}
			}
			return most
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Fatal("they are never over")
	return nil
}

func TestTheSiteBoundsWhatHappensAcrossJobs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name             string
		site             func(*tuning.Site)
		atATime, restart int
		rule             string
	}{
		{"without caps", func(*tuning.Site) {}, 3, 6, ""},
		{"two restarts of a user in an hour", func(s *tuning.Site) { s.UserRestarts = 2 }, 2, 2, "user_restarts=2 (site.yaml:1)"},
		{"three restarts in all in an hour", func(s *tuning.Site) { s.TotalRestarts = 3 }, 3, 3, "total_restarts=3 (site.yaml:2)"},
		// b comes first, and a ends while it waits.
		{"one job at a time", func(s *tuning.Site) { s.MaxTuned = 1 }, 1, 4, "max_tuned=1 (site.yaml:3)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				tc.site(&w.site)
				w.site.Sources = map[string]string{"user_restarts": "site.yaml:1", "total_restarts": "site.yaml:2", "max_tuned": "site.yaml:3"}
				w.decide = probeThenMove
				a := w.mustSubmit(t, "a", usual)
				b := w.mustSubmit(t, "b", "epochs=24 seconds=2 checkpoint=500ms")
				c := w.mustSubmit(t, "c", "epochs=40 seconds=2 checkpoint=500ms")
				got := w.together(t, a, b, c)
				if got[0] > tc.atATime || got[1] != tc.restart {
					t.Errorf("%d at a time and %d restarts, want at most %d and %d", got[0], got[1], tc.atATime, tc.restart)
				}
				rules := map[string]bool{}
				for _, id := range []driver.JobID{a, b, c} {
					r, err := w.records.Load(t.Context(), id)
					if err != nil {
						t.Fatal(err)
					}
					for _, e := range r.History {
						if e.Reason == tuning.ReasonSiteCap {
							rules[e.Detail] = true
						}
					}
				}
				if len(rules) > 1 || rules[tc.rule] != (tc.rule != "") {
					t.Errorf("the caps are told as %v, want %q", rules, tc.rule)
				}
			})
		})
	}
}

func TestTheTunerPausesItselfAfterSoManyRegressions(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.site.PauseAfter = 2
		w.decide, w.compare = full, worse
		for i, name := range []string{"a", "b", "c", "d"} {
			rec, _ := w.end(t, w.mustSubmit(t, name, usual))
			if rec.Outcome == nil || rec.Outcome.Verdict != tuning.Regressed {
				t.Fatalf("job %s has outcome %+v, want a regression", name, rec.Outcome)
			}
			if want := (i + 1) / 2; len(w.pauses) != want {
				t.Errorf("after %d regressions %d pauses, want %d", i+1, len(w.pauses), want)
			}
			if len(w.lessons[i].Regressed) == 0 {
				t.Errorf("the regression of %s is not in its lesson", name)
			}
		}
	})
}

func TestTheTunerPausesItselfAfterALostJobThatItTouched(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		decide func(tuning.State) tuning.Decision
		pauses int
	}{
		{"touched", probeThenMove, 1},
		{"never touched", func(tuning.State) tuning.Decision { return hold(tuning.ReasonTooShort) }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.decide = tc.decide
				_, job := w.end(t, w.mustSubmit(t, "a", "epochs=60 seconds=2 checkpoint=500ms dies_at=20s"))
				if job.State != driver.Lost || len(w.pauses) != tc.pauses {
					t.Errorf("the job is %s, %d pauses; want lost, %d", job.State, len(w.pauses), tc.pauses)
				}
			})
		})
	}
}

func TestAJobThatFailedUnderATunedSettingTeachesThat(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = probeThenMove
		rec, job := w.end(t, w.mustSubmit(t, "a", usual+" exit=3 at=8"))
		if job.State != driver.Failed || rec.Reason != tuning.ReasonFailed {
			t.Errorf("the job is %s because of %s", job.State, rec.Reason)
		}
		if len(w.lessons) != 1 || !slices.ContainsFunc(w.lessons[0].Regressed, rec.Settings(job.Attempt).Equal) {
			t.Errorf("lessons %+v, want %s as one that hurt", w.lessons, rec.Settings(job.Attempt))
		}
	})
}

func TestAJobThatARestartEndedIsARegression(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		behaviour string
		reason    tuning.Reason
		hurt      bool // the setting is barred
	}{
		{"epochs=30 seconds=2 checkpoint=500ms exit=3 at=4", tuning.ReasonResumeFailed, true},
		{"epochs=30 seconds=2 checkpoint=500ms exit=3 at=3", tuning.ReasonFailed, false},
		{"epochs=30 seconds=2", tuning.ReasonSignalEnded, false},
		{"epochs=30 seconds=2 checkpoint=500ms exit=3 at=6", tuning.ReasonFailed, true},
	} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			w.site.PauseAfter = 1
			w.decide = func(s tuning.State) tuning.Decision {
				if s.Measured != tuning.ReasonNone || s.Restarts > 0 {
					return hold(tuning.ReasonProfiling)
				}
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonPredicted, Settings: cores(1)}
			}
			rec, job := w.end(t, w.mustSubmit(t, "a", tc.behaviour))
			if job.State != driver.Failed || rec.Reason != tc.reason || len(w.lessons) != 1 {
				t.Fatalf("%s: the job is %s because of %s, want %s; lessons %+v", tc.behaviour, job.State, rec.Reason, tc.reason, w.lessons)
			}
			broke, hurt := tc.reason != tuning.ReasonFailed, len(w.lessons[0].Regressed) > 0
			if w.lessons[0].Broke != broke || len(w.pauses) > 0 != broke || hurt != tc.hurt {
				t.Errorf("%s: lesson %+v, %d pauses", tc.behaviour, w.lessons[0], len(w.pauses))
			}
			if lost := rec.Toll != nil && rec.Toll.Seconds >= 4; lost != broke {
				t.Errorf("%s: toll %+v; want the work lost: %v", tc.behaviour, rec.Toll, broke)
			}
		})
	}
}

// crashing is a scheduler that began the second attempt again in place.
type crashing struct{ reconcile.Scheduler }

func (c crashing) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	job, err := c.Scheduler.Get(ctx, id)
	if job.Attempts = slices.Clone(job.Attempts); job.Attempt > 1 {
		job.Attempts[1].Crashes = 1
	}
	return job, err
}

func TestAJobThatCrashesAfterAMoveReturnsToItsOwnersSettings(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		crashes bool
		want    int // attempts
	}{{true, 3}, {false, 2}} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			w.decide = func(s tuning.State) tuning.Decision {
				if s.Measured != tuning.ReasonNone || s.Restarts > 0 {
					return hold(tuning.ReasonProfiling)
				}
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonPredicted, Settings: cores(1)}
			}
			if tc.crashes {
				w.scheduler = crashing{w.cluster}
				w.restart()
			}
			rec, job := w.end(t, w.mustSubmit(t, "a", usual))
			if len(job.Attempts) != tc.want || job.State != driver.Succeeded || rec.Settings(job.Attempt).Equal(rec.Own) != tc.crashes {
				t.Errorf("crashes %v: %s after %d attempts under %s", tc.crashes, job.State, len(job.Attempts), rec.Settings(job.Attempt))
			}
			told := slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool { return e.Reason == tuning.ReasonResumeFailed })
			if hurt := slices.ContainsFunc(w.lessons[0].Regressed, cores(1).Equal); told != tc.crashes || hurt != tc.crashes || len(rec.Cut) > 0 {
				t.Errorf("crashes %v: told %v, remembered %v", tc.crashes, told, hurt)
			}
		})
	}
}

func TestAnUnreachableSchedulerChangesNothing(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = probeThenMove
		id := w.mustSubmit(t, "a", usual)
		w.until(t, id, func(r *reconcile.Record) bool { return r.Phase == reconcile.Profiling })
		w.fault(sim.OpGet, driver.ErrTransient)
		for range 5 {
			if err := w.look(id); err == nil {
				t.Fatal("no error while the scheduler is away")
			}
		}
		rec, err := w.records.Load(w.ctx, id)
		if err != nil || rec.Phase != reconcile.Profiling || !rec.Unreachable || !rec.NeedsAttention() {
			t.Fatalf("phase %s, unreachable %t, error %v; want profiling and unreachable", rec.Phase, rec.Unreachable, err)
		}
		w.fault(sim.OpGet, nil)
		if _, job := w.end(t, id); len(job.Attempts) != 3 {
			t.Errorf("%d attempts, want 3", len(job.Attempts))
		}
	})
}

// holding is a scheduler that holds its jobs.
type holding struct {
	reconcile.Scheduler
	why string
}

func (h *holding) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	job, err := h.Scheduler.Get(ctx, id)
	job.Held = h.why
	return job, err //nolint:wrapcheck // the scheduler's own
}

func TestTheRecordSaysWhyItsSchedulerHoldsAJobForAsLongAsItDoes(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonTooShort) }
		h := &holding{Scheduler: w.cluster}
		w.scheduler = h
		w.restart()
		id := w.mustSubmit(t, "train", usual)
		for _, h.why = range []string{"", "it left with status 85 unasked", "", "it left with status 85 unasked"} {
			_ = w.look(id)
			if rec, err := w.records.Load(t.Context(), id); err != nil || rec.Held != h.why {
				t.Errorf("held %q, want %q: %v", rec.Held, h.why, err)
			}
		}
		w.fault(sim.OpGet, driver.ErrNotFound)
		_ = w.look(id)
		if rec, err := w.records.Load(t.Context(), id); err != nil || rec.State != driver.Lost || rec.Held != "" {
			t.Errorf("of a job that is gone: %s, held %q: %v", rec.State, rec.Held, err)
		}
	})
}

func TestAReasonOutlivesASchedulerThatDidNotAnswer(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonTooShort) }
		id := w.mustSubmit(t, "train", usual)
		w.until(t, id, func(r *reconcile.Record) bool { return r.Phase == reconcile.Settled })
		for _, tc := range []struct {
			err   error
			shown tuning.Reason
		}{{driver.ErrTransient, tuning.ReasonUnreachable}, {nil, tuning.ReasonTooShort}, {driver.ErrTransient, tuning.ReasonUnreachable}, {driver.ErrNotFound, tuning.ReasonLost}} {
			w.fault(sim.OpGet, tc.err)
			_ = w.look(id)
			if rec, err := w.records.Load(t.Context(), id); err != nil || rec.Because() != tc.shown || tc.err == nil && rec.Reason != tc.shown {
				t.Errorf("after %v the reason shown is %s, and %s is kept; want %s: %v", tc.err, rec.Because(), rec.Reason, tc.shown, err)
			}
		}
	})
}
