package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/sim"
)

// trying is a planner that tries a setting on every job that has not started.
func trying(n int) func(tuning.State) tuning.Decision {
	return func(s tuning.State) tuning.Decision {
		if s.Pending {
			return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonTryingReturn, Settings: cores(n)}
		}
		return hold(tuning.ReasonNoCheckpoint)
	}
}

// returns makes a world whose jobs have run before, and may try settings so often.
func (w *world) returning(tries int) {
	w.policy.Budget.Returns = tries
	w.past = []tuning.PastRun{{Job: "earlier", Began: cores(4)}}
}

func TestWhatATryTaughtIsInItsLesson(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, behaviour string
		stop            bool
		end             tuning.End
		epochs, hurt    int
	}{
		{"it did all of its work", "epochs=6 seconds=2", false, tuning.EndReached, 6, 0},
		{"its setting killed it", "epochs=90 seconds=2 parallel=1\n#SBATCH --time=1", false, tuning.EndFailed, -1, 1},
		{"it was lost before its first epoch was over", "epochs=6 seconds=2 dies_at=1s", false, tuning.EndCut, 0, 0},
		{"its owner cancelled it", "epochs=60 seconds=2", true, tuning.EndCut, -1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.returning(2)
				w.decide = trying(1)
				id := w.mustSubmit(t, "train", tc.behaviour)
				if tc.stop {
					w.until(t, id, func(r *reconcile.Record) bool { return r.Done() > 2 })
					if err := w.cluster.Stop(w.ctx, id); err != nil {
						t.Fatal(err)
					}
				}
				rec, _ := w.end(t, id)
				if !rec.Trying() || !rec.Recalled() || len(w.lessons) != 1 {
					t.Fatalf("trying %v, recalled %v, %d lessons", rec.Trying(), rec.Recalled(), len(w.lessons))
				}
				l := w.lessons[0]
				if !l.Trying || !l.Began.Equal(cores(1)) || l.End != tc.end || len(l.Regressed) < tc.hurt {
					t.Errorf("lesson: trying %v, began %v, end %q, regressed %v; want end %q", l.Trying, l.Began, l.End, l.Regressed, tc.end)
				}
				if tc.epochs >= 0 && l.Epochs != tc.epochs || tc.epochs < 0 && l.Epochs == 0 {
					t.Errorf("%d epochs in the lesson, want %d", l.Epochs, tc.epochs)
				}
			})
		})
	}
}

func TestAnUntunedRunIsNoTry(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonFirstSeen) }
		rec, _ := w.end(t, w.mustSubmit(t, "train", "epochs=4 seconds=2"))
		l := w.lessons[0]
		if rec.Trying() || l.Trying || !l.Began.Equal(cores(4)) || l.End != tuning.EndReached || l.Epochs != 4 {
			t.Errorf("lesson %+v", l)
		}
	})
}

func TestReturnsThatWaitSideBySideShareTheirBudgetAndACrashForgetsNone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		spent int // by runs that are over
		tries int // that are left
	}{
		{"two may try", 0, 2},
		{"one has tried already", 1, 1},
		{"all have", 2, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.returning(2)
				for range tc.spent {
					w.past = append(w.past, tuning.PastRun{Job: "a try", Began: cores(2), Trying: true})
				}
				w.decide = trying(1)
				var asked []reconcile.ReturnRequest
				w.returns = func(q reconcile.ReturnRequest) tuning.Returns {
					asked = append(asked, q)
					return tuning.Returns{Next: cores(1)}
				}
				var ids []driver.JobID
				for _, name := range []string{"a", "b", "c", "d"} {
					w.read = nil
					ids = append(ids, w.mustSubmit(t, name, "epochs=20 seconds=2"))
				}
				w.read = func(job driver.Job) reconcile.Reading { // all are of one kind
					return reconcile.Reading{Policy: w.policy, Own: own(job), Kind: tuning.JobKind{Owner: job.Owner, Name: "train"}}
				}
				for range 6 {
					for _, id := range ids {
						if _, err := w.loop.Reconcile(w.ctx, id); err != nil {
							t.Fatal(err)
						}
					}
					w.restart() // what is under way is known from the records
					time.Sleep(300 * time.Millisecond)
				}
				most := 0
				for _, q := range asked {
					most = max(most, len(q.Underway))
				}
				tried := 0
				for _, id := range ids {
					rec, _ := w.end(t, id)
					if rec.Trying() {
						tried++
					}
				}
				if tried != tc.tries {
					t.Errorf("%d of four tried, want %d", tried, tc.tries)
				}
				if most != tc.tries {
					t.Errorf("the search was told of %d tries under way, want %d", most, tc.tries)
				}
				if n := len(slices.DeleteFunc(slices.Clone(w.lessons), func(l reconcile.Lesson) bool { return !l.Trying })); n != tc.tries {
					t.Errorf("%d lessons tell of a try, want %d", n, tc.tries)
				}
			})
		})
	}
}

func TestARecordOfAnOlderVersionTriedNothing(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*reconcile.Record{
		"an empty one":            {},
		"a recalled job":          {Runs: []reconcile.Run{{Attempt: 1, Action: tuning.Move}}, History: []reconcile.Entry{{To: reconcile.Recalled, Decision: &tuning.Decision{Reason: tuning.ReasonRecalled}}}},
		"a change that came late": {Runs: []reconcile.Run{{Attempt: 1, Action: tuning.Hold}}, History: []reconcile.Entry{{To: reconcile.Recalled, Decision: &tuning.Decision{Reason: tuning.ReasonTryingReturn}}}},
	} {
		if r.Trying() {
			t.Errorf("%s tried a setting", name)
		}
	}
}
