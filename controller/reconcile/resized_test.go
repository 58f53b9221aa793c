package reconcile_test

import (
	"slices"
	"testing"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// His scheduler's own command changes what he asks for, and the job file stays as it was.
func TestWhatTheOwnerAsksHisSchedulerForIsTakenAnew(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		after int // looks
		moves bool
	}{
		{"before it begins", 1, false},
		{"as it runs", 8, false},
		{"while an intent is under way", 8, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.decide = func(s tuning.State) tuning.Decision {
					if tc.moves && !s.Pending && s.Measured == tuning.ReasonNone && s.Restarts == 0 {
						return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonProbeWon, Settings: cores(1)}
					}
					return hold(tuning.ReasonProfiling)
				}
				s := w.answering(t, "train")
				look := func() *reconcile.Record {
					t.Helper()
					if err := w.look(s.id); err != nil {
						t.Fatal(err)
					}
					rec, err := w.records.Load(w.ctx, s.id)
					if err != nil {
						t.Fatal(err)
					}
					return rec
				}
				rec := look()
				for i := 1; i < tc.after || tc.moves && rec.Move == nil; i++ {
					rec = look()
				}
				if !rec.Own.Equal(cores(4)) || tc.moves != (rec.Move != nil) {
					t.Fatalf("it asks for %s, and its intent is %+v; want four cores, and one under way: %t", rec.Own, rec.Move, tc.moves)
				}
				s.changed = func(j *driver.Job) { j.Resources.Cores = 2 }
				rec = look()
				if under := rec.Move != nil; under == rec.Own.Equal(cores(2)) {
					t.Errorf("an intent is under way: %t, and it asks for %s", under, rec.Own)
				}
				for rec.Move != nil || !rec.Own.Equal(cores(2)) && !rec.Phase.Over() {
					rec = look()
				}
				runs := len(rec.Runs)
				rec, _ = w.end(t, s.id)
				came := tuning.Count(rec.History, func(e reconcile.Entry) bool { return e.Trigger == reconcile.OwnerChanged })
				if !rec.Own.Equal(cores(2)) || came != 1 || len(rec.Runs) < runs {
					t.Errorf("it asks for %s after %d changes, with %d runs; want two cores, one, and the %d of before", rec.Own, came, len(rec.Runs), runs)
				}
				if tc.after > 1 && !slices.ContainsFunc(rec.Epochs, func(e tuning.Epoch) bool { return e.Settings.Equal(cores(4)) }) {
					t.Error("what it did with four cores is forgotten")
				}
			})
		})
	}
}

func TestAJobWhoseStanzaBrokeInAnEditWasChangedOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonProfiling) }
		s := w.answering(t, "train")
		w.until(t, s.id, func(r *reconcile.Record) bool { return r.Phase == reconcile.Profiling })
		s.changed = func(j *driver.Job) { j.Fingerprint, j.Resources.Cores = "edited", 2 }
		w.read = func(driver.Job) reconcile.Reading { return reconcile.Reading{Reason: tuning.ReasonBadStanza} }
		for range 10 {
			if err := w.look(s.id); err != nil {
				t.Fatal(err)
			}
		}
		rec, err := w.records.Load(w.ctx, s.id)
		if err != nil || rec.Phase != reconcile.Ignored || rec.Policy.Mode != "" {
			t.Fatalf("it is %s in mode %q, want ignored and in none: %v", rec.Phase, rec.Policy.Mode, err)
		}
		if came := tuning.Count(rec.History, func(e reconcile.Entry) bool { return e.Trigger == reconcile.OwnerChanged }); came != 1 {
			t.Errorf("its owner changed it %d times, want once", came)
		}
	})
}
