package reconcile_test

import (
	"slices"
	"testing"
	"time"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
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
				var asked []search.Returning
				w.returns = func(q search.Returning) tuning.Returns {
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
				if n := len(slices.DeleteFunc(slices.Clone(w.lessons), func(l knowledge.Observation) bool { return !l.Trying })); n != tc.tries {
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
		"a recalled job":          {Course: reconcile.Course{Runs: []reconcile.Run{{Attempt: 1, Action: tuning.Move}}}, Story: reconcile.Story{History: []reconcile.Entry{{Trigger: reconcile.KnownKind, Decision: &tuning.Decision{Reason: tuning.ReasonRecalled}}}}},
		"a change that came late": {Course: reconcile.Course{Runs: []reconcile.Run{{Attempt: 1, Action: tuning.Hold}}}, Story: reconcile.Story{History: []reconcile.Entry{{Trigger: reconcile.KnownKind, Decision: &tuning.Decision{Reason: tuning.ReasonTryingReturn}}}}},
	} {
		if r.Trying() {
			t.Errorf("%s tried a setting", name)
		}
	}
}

// foreseeing begins every job that waits with one core where an untuned run of its kind has
// shown what it makes of its cores.
func foreseeing(s tuning.State) tuning.Decision {
	if s.Pending && s.Profile != nil {
		return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonPredictedStart, Settings: cores(1)}
	}
	return hold(tuning.ReasonNoCheckpoint)
}

func TestOfAKindAtMostTheSitesShareBeginsUnderWhatIsOnlyPredicted(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		share float64
		runs  int // that showed it
		tuned int
	}{
		{"half of six", 0.5, 0, 3},
		{"one where the share is less than one", 0.1, 0, 1},
		{"two more for a run that showed it", 0.1, 1, 3},
		{"none where the site wants none", 0, 1, 0},
		{"all that wait", 1, 0, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n", Cores: 8, MemoryBytes: 1 << 40}}}, func(t *testing.T, w *world) {
				w.site.ProbeShare = tc.share
				w.read = func(job driver.Job) reconcile.Reading {
					return reconcile.Reading{Policy: w.policy, Own: own(job), Kind: tuning.JobKind{Owner: job.Owner, Name: "task"}}
				}
				w.recall = func(q reconcile.Question) reconcile.Recollection {
					out := reconcile.Recollection{Profile: knowledge.KindProfile(q.Live, q.Asker())}
					out.KindEffects = []tuning.Effect{{Settings: cores(1), Runs: tc.runs}}
					return out
				}
				w.decide = foreseeing
				var ids []driver.JobID
				for _, name := range []string{"a", "b", "c", "d", "e", "f"} { // two at a time have room
					ids = append(ids, w.mustSubmit(t, name, "epochs=20 seconds=8"))
				}
				for range 60 {
					for _, id := range ids {
						if _, err := w.loop.Reconcile(w.ctx, id); err != nil {
							t.Fatal(err)
						}
					}
					if r, err := w.records.Load(w.ctx, ids[0]); err == nil && r.Done() == 4 {
						w.restart() // what is under way is known from the records
					}
					time.Sleep(500 * time.Millisecond)
				}
				tuned := 0
				for _, id := range ids {
					r, err := w.records.Load(w.ctx, id)
					if err != nil {
						t.Fatal(err)
					}
					if r.Move != nil || len(r.Runs) > 0 && r.Runs[0].Action == tuning.Move || r.Phase == reconcile.Verifying {
						tuned++
					}
				}
				if tuned != tc.tuned {
					t.Errorf("%d of those that wait begin under it, want %d", tuned, tc.tuned)
				}
				for _, id := range ids {
					w.end(t, id)
				}
			})
		})
	}
}

func TestAJobThatBeganTunedIsComparedWithTheUntunedRunsOfItsKind(t *testing.T) {
	t.Parallel()
	worse := tuning.Outcome{Verdict: tuning.Regressed, Reason: tuning.ReasonRegressed, Runs: 1, Tuned: cores(1), Baseline: cores(4)}
	for _, tc := range []struct {
		name   string
		change func(w *world)
		told   bool
	}{
		{"its epochs tell nothing by themselves", func(*world) {}, true},
		{"they do", func(w *world) {
			w.compare = func(c verify.Input) tuning.Outcome {
				return tuning.Outcome{Verdict: tuning.Improved, Reason: tuning.ReasonImproved, Tuned: c.Tuned}
			}
		}, false},
		{"others disturbed it", func(w *world) { w.epoch = func(e *tuning.Epoch) { e.Polluted = true } }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.site.PauseAfter = 1
				w.past = []tuning.PastRun{{Job: "earlier", Began: cores(4)}}
				w.recall = func(reconcile.Question) reconcile.Recollection {
					return reconcile.Recollection{Profile: &tuning.Profile{Schema: "test/1"}}
				}
				w.decide = foreseeing
				var asked []tuning.PastRun
				w.stands = func(q search.Returning, s tuning.Settings) (tuning.Outcome, bool) {
					asked = q.Past
					return worse, s.Equal(cores(1))
				}
				tc.change(w)
				rec, _ := w.end(t, w.mustSubmit(t, "train", "epochs=6 seconds=2"))
				if told := rec.Outcome != nil && rec.Outcome.Runs == 1; told != tc.told {
					t.Fatalf("outcome %+v", rec.Outcome)
				}
				if !tc.told {
					return
				}
				if len(asked) != 2 || !asked[1].Began.Equal(cores(1)) || asked[1].End != tuning.EndReached || len(asked[1].Trials) != 1 {
					t.Errorf("compared were %+v", asked)
				}
				l := w.lessons[0]
				if l.Outcome == nil || l.Outcome.Verdict != tuning.Regressed || len(l.Regressed) != 1 || !l.Regressed[0].Equal(cores(1)) {
					t.Errorf("lesson %+v", l)
				}
				if len(w.pauses) != 0 {
					t.Error("the tuner paused itself for what another input may have done")
				}
			})
		})
	}
}

func TestTheFirstRunOfAKindIsNeverDrawnIntoTheUntunedShare(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		search string // that it is a trial of
		past   []tuning.PastRun
		drawn  bool
	}{
		{"its kind never ran", "", nil, false},
		{"its kind ran", "", []tuning.PastRun{{Job: "earlier", Began: cores(4)}}, true},
		{"only other trials of its search ran", "s", []tuning.PastRun{{Job: "earlier", Search: "s"}}, false},
		{"another search ran", "s", []tuning.PastRun{{Job: "earlier", Search: "r"}, {Job: "other", Search: "s"}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.site.Control, w.past = 1, tc.past
				if tc.search != "" {
					w.policy.TrialOf = &tuning.Search{ID: tc.search}
				}
				w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonNoCheckpoint) }
				rec, _ := w.end(t, w.mustSubmit(t, "train", "epochs=4 seconds=2"))
				if rec.Control != tc.drawn {
					t.Errorf("drawn: %v", rec.Control)
				}
			})
		})
	}
}

func TestAJobThatMayNotHaveLessMemoryIsGivenTheRest(t *testing.T) {
	t.Parallel()
	for _, why := range []error{driver.ErrUnsupported, driver.ErrDenied} {
		t.Run(why.Error(), func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.policy.Knobs = append(w.policy.Knobs, tuning.Knob{Name: tuning.Memory, Min: tuning.Number(1 << 20), Max: tuning.Number(1 << 30)})
				w.read = func(job driver.Job) reconcile.Reading {
					return reconcile.Reading{Policy: w.policy, Own: own(job).With(tuning.Memory, tuning.Number(1<<30)), Kind: tuning.JobKind{Owner: job.Owner, Name: job.Name}}
				}
				w.decide = func(s tuning.State) tuning.Decision {
					switch {
					case s.Pending && s.MemoryHeld:
						return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: s.Own.With(tuning.Cores, tuning.Number(1))}
					case s.Pending:
						w.fault(sim.OpAdvance, why)
						return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: cores(1).With(tuning.Memory, tuning.Number(1<<28))}
					}
					return hold(tuning.ReasonNoCheckpoint)
				}
				id := w.mustSubmit(t, "train", "epochs=4 seconds=2")
				for range 3 { // seen, wanted, refused
					if _, err := w.loop.Reconcile(w.ctx, id); err != nil {
						t.Fatal(err)
					}
				}
				w.fault(sim.OpAdvance, nil)
				rec, _ := w.end(t, id)
				if began := rec.Settings(1); began[tuning.Cores] != tuning.Number(1) || began[tuning.Memory] != rec.Own[tuning.Memory] {
					t.Errorf("it began with %v, its owner asked for %v", began, rec.Own)
				}
			})
		})
	}
}
