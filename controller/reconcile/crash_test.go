package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// full is a way through every kind of intent: recalled, probed, moved, rolled
// back.
func full(s tuning.State) tuning.Decision {
	switch {
	case s.Pending:
		return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: cores(1)}
	case s.Outcome != nil && s.Outcome.Verdict == tuning.Regressed && s.Restarts < 2 && !s.Current.Equal(s.Own):
		return tuning.Decision{Action: tuning.RollBack, Reason: tuning.ReasonRegressed, Settings: s.Own}
	case s.Measured != tuning.ReasonNone:
		return hold(tuning.ReasonProfiling)
	}
	return probeThenMove(s)
}

// worse makes every tuned setting look worse.
func worse(verify.Input) tuning.Outcome {
	return tuning.Outcome{Verdict: tuning.Regressed, Reason: tuning.ReasonRegressed}
}

// play takes a job through a way, with the loop dropped whenever drop says so:
// after or instead of the n-th save.
func play(t *testing.T, decide func(tuning.State) tuning.Decision, compare func(verify.Input) tuning.Outcome,
	crashAt int, lost bool,
) (saves int, rec *reconcile.Record, job driver.Job) {
	t.Helper()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide, w.compare = decide, compare
		note := w.records.before
		crashed := false
		attempts := 0
		fail := func() error {
			crashed = true
			return errInjected
		}
		w.records.before = func(r *reconcile.Record) error {
			if err := note(r); err != nil {
				return err
			}
			if attempts++; lost && attempts == crashAt {
				return fail()
			}
			return nil
		}
		w.records.after = func(*reconcile.Record) error {
			if !lost && attempts == crashAt {
				return fail()
			}
			return nil
		}
		id := w.mustSubmit(t, "train", usual)
		for range 3000 {
			_ = w.look(id) // the error of the crash
			if crashed {
				crashed = false
				w.restart()
			}
			if r, err := w.records.Load(w.ctx, id); err == nil && r.Phase.Over() {
				break
			}
		}
		rec, job = w.end(t, id)
		saves = attempts
	})
	return saves, rec, job
}

func TestACrashAfterOrInsteadOfAnySaveLosesNothing(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name     string
		decide   func(tuning.State) tuning.Decision
		compare  func(verify.Input) tuning.Outcome
		attempts int
	}{
		{"probed and moved", probeThenMove, nil, 3},
		{"recalled and rolled back", full, worse, 2},
		{"recalled, doubted and moved back", doubting(true), nil, 3},
	} {
		saves, _, job := play(t, way.decide, way.compare, 0, false)
		if len(job.Attempts) != way.attempts || job.State != driver.Succeeded {
			t.Fatalf("%s, without a crash: %d attempts, %s; want %d", way.name, len(job.Attempts), job.State, way.attempts)
		}
		if saves < 8 {
			t.Fatalf("%s: only %d saves", way.name, saves)
		}
		for n := 1; n <= saves; n++ {
			for _, lost := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, save %d, lost %t", way.name, n, lost), func(t *testing.T) {
					t.Parallel()
					_, rec, job := play(t, way.decide, way.compare, n, lost)
					if job.State != driver.Succeeded || len(job.Attempts) != way.attempts {
						t.Errorf("%s with %d attempts, want succeeded with %d", job.State, len(job.Attempts), way.attempts)
					}
					if rec.Done() != 12 {
						t.Errorf("%d epochs are known, want 12", rec.Done())
					}
				})
			}
		}
	}
}

func TestAPauseAtAnyMomentLeavesNothingHeldAndStartsNothing(t *testing.T) {
	t.Parallel()
	saves, _, _ := play(t, probeThenMove, nil, 0, false)
	for n := 1; n <= saves; n++ {
		for _, answer := range []error{nil, driver.ErrUnknown, sim.ErrNotTaken} {
			t.Run(fmt.Sprintf("save %d, answers %v", n, answer), func(t *testing.T) {
				t.Parallel()
				inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
					w.decide = probeThenMove
					w.fault(sim.OpAdvance, answer)
					asked := map[string]bool{}
					w.records.after = func(r *reconcile.Record) error {
						if w.records.saves == n {
							w.gate = tuning.ReasonPaused // and never lifted
							w.fault(sim.OpAdvance, nil)
							if r.Move != nil && r.Move.Tried {
								asked[r.Move.Driver.ID] = true // in this very moment
							}
						}
						return nil
					}
					id := w.mustSubmit(t, "train", usual)
					_, job := w.end(t, id)
					if job.State != driver.Succeeded {
						t.Errorf("the job is %s", job.State)
					}
					// While paused only an intent that a job was already asked for goes on.
					for _, line := range w.trace {
						words := strings.Fields(line)
						switch {
						case words[0] == "advance":
							asked[words[1]] = true
						case words[0] == "gated" && !asked[words[2]]:
							t.Errorf("%q: nothing had been asked of the job", line)
						}
					}
				})
			})
		}
	}
}

func TestAPauseBeforeTheFirstStepDropsTheIntent(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = probeThenMove
		id := w.mustSubmit(t, "train", usual)
		w.until(t, id, func(r *reconcile.Record) bool { return r.Move != nil && !r.Move.Tried })
		w.gate = tuning.ReasonPaused
		rec := w.until(t, id, func(r *reconcile.Record) bool { return r.Move == nil })
		if slices.ContainsFunc(w.trace, func(s string) bool { return strings.Contains(s, "advance") }) {
			t.Errorf("paused, and yet: %q", w.trace)
		}
		if last := rec.History[len(rec.History)-1]; last.Trigger != reconcile.IntentVoid || last.Reason != tuning.ReasonPaused {
			t.Errorf("the history ends with %+v, want a void intent because of the pause", last)
		}
		w.gate = tuning.ReasonNone
		if _, job := w.end(t, id); len(job.Attempts) != 3 {
			t.Errorf("%d attempts after the pause, want 3: it goes on", len(job.Attempts))
		}
	})
}
