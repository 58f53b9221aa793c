package reconcile_test

import (
	"fmt"
	"slices"
	"testing"

	"pitchpipe/controller/adapt"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// widens makes a world of jobs that can widen twice, and of whose kind runs ended better for it.
func (w *world) widens(handed *[]string) {
	w.policy.Actions, w.policy.Quality = []tuning.Offer{{Name: "widen", Max: 2}}, &tuning.Quality{Direction: "max"}
	w.epoch = func(e *tuning.Epoch) { e.Quality = new(float64(e.Number)) }
	for i := range 6 {
		run := tuning.PastRun{Adapted: &tuning.Adapted{Quality: new(0.6)}}
		if i > 2 {
			run.Adapted = &tuning.Adapted{Quality: new(0.8), Taken: []tuning.Taken{{Name: "widen", Left: 6}, {Name: "widen", Left: 5}}}
		}
		w.past = append(w.past, run)
	}
	w.decide = func(s tuning.State) tuning.Decision {
		if s.Adaptation != nil {
			return adapt.Decide(s)
		}
		return hold(tuning.ReasonAlreadyBest)
	}
	if handed != nil {
		w.adapt = func(settings map[string]string) error {
			*handed = append(*handed, settings["widen"])
			return nil
		}
	}
	w.restart()
}

func TestActionsAreDecidedAtEpochsAndHandedOverAsCounts(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		var handed []string
		w.widens(&handed)
		rec, _ := w.end(t, w.mustSubmit(t, "train", "epochs=10 seconds=5"))
		if fmt.Sprint(handed) != "[1 2]" || tuning.Times(rec.Taken, "widen") != 2 || rec.Handing || len(rec.Restarts) > 0 {
			t.Errorf("handed over %v, recorded %+v", handed, rec.Taken)
		}
		if left := rec.Taken[0].Left; left != 8 {
			t.Errorf("%g epochs left at the first: want it decided after the first of ten, for the third on", left)
		}
		audited := tuning.Each(w.audits, func(a reconcile.Audit) string { return a.Action + " " + a.After.String() })
		if fmt.Sprint(audited) != "[adapt widen=1 adapt widen=2]" {
			t.Errorf("audited %q", audited)
		}
		for _, r := range rec.Replay(w.decide) {
			if !r.Same {
				t.Errorf("decided otherwise again: %+v", r)
			}
		}
		o := w.lessons[0]
		if o.Final != nil || o.Adapted == nil || o.Adapted.Quality == nil || *o.Adapted.Quality != 9 || len(o.Adapted.Taken) != 2 {
			t.Errorf("taught %+v, final %+v: want the mean of the last three epochs, and no final of its hyperparameters", o.Adapted, o.Final)
		}
	})
}

func TestNoActionIsHandedOver(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world){
		"where runs of the kind ended no better":     func(w *world) { w.past = w.past[:3] },
		"where no run of the kind went undisturbed":  func(w *world) { w.past = w.past[3:] },
		"in mode recommend":                          func(w *world) { w.policy.Mode = tuning.Recommend },
		"while tuning is paused":                     func(w *world) { w.gate = tuning.ReasonPaused },
		"by a scheduler that cannot":                 func(w *world) { w.adapt = nil; w.restart() },
		"to a job that has no settings file":         func(w *world) { w.adapt = func(map[string]string) error { return driver.ErrUnsupported } },
		"to a job that was drawn for the comparison": func(w *world) { w.site.Control = 1 },
		"where the audit cannot be written":          func(w *world) { w.auditFails = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				var handed []string
				w.widens(&handed)
				change(w)
				rec, _ := w.end(t, w.mustSubmit(t, "train", "epochs=10 seconds=5"))
				if len(handed) > 0 || len(rec.Taken) > 0 {
					t.Errorf("handed over %v, recorded %+v", handed, rec.Taken)
				}
			})
		})
	}
}

func TestARunThatMayHaveEndedBeforeItsActionTeachesNothingAboutIt(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.widens(nil)
		w.adapt = func(map[string]string) error { return driver.ErrConflict }
		w.restart()
		rec, _ := w.end(t, w.mustSubmit(t, "train", "epochs=10 seconds=5"))
		if o := w.lessons[0].Adapted; !rec.Handing || o == nil || o.Quality != nil {
			t.Errorf("taught %+v, want no quality", o)
		}
	})
}

// TestAKilledControllerHandsOverEachActionOnce drops the loop at every save and every hand-over.
func TestAKilledControllerHandsOverEachActionOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("kills a controller at each step: make check runs it")
	}
	t.Parallel()
	for step := 1; ; step++ {
		steps := 0
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			var handed []string
			dies := func() error {
				if steps++; steps == step {
					return errInjected
				}
				return nil
			}
			w.widens(&handed)
			before, adapt := w.records.before, w.adapt
			w.records.before = func(r *reconcile.Record) error {
				if err := dies(); err != nil {
					return err
				}
				return before(r)
			}
			w.records.after = func(*reconcile.Record) error { return dies() }
			w.adapt = func(settings map[string]string) error {
				if err := dies(); err != nil { // before the effect
					return err
				}
				if err := adapt(settings); err != nil {
					return err
				}
				return dies() // after it
			}
			w.restart()
			job := w.mustSubmit(t, "train", "epochs=10 seconds=5")
			for range 500 {
				at := steps
				if err := w.look(job); err != nil && at < step && steps >= step {
					w.restart()
				}
				if rec, err := w.records.Load(w.ctx, job); err == nil && rec.Phase.Over() {
					break
				}
			}
			// Counts, so that one that is handed over again does not count as a further action.
			if !slices.IsSorted(handed) || handed[len(handed)-1] != "2" {
				t.Errorf("death at step %d: handed over %v, want no count that falls, and 2 in the end", step, handed)
			}
		})
		if steps < step || t.Failed() {
			break
		}
	}
}
