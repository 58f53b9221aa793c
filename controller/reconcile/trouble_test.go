package reconcile_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

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
		if job.State != driver.Succeeded || !slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool { return e.To == reconcile.Settled }) {
			t.Errorf("the job is %s, its history %+v; want succeeded and failed", job.State, rec.History)
		}
	})
}

func TestAJobThatWaitsForRoomBetweenTwoAttemptsIsLeftAlone(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n", Cores: 4, MemoryBytes: 1 << 30}}}, func(t *testing.T, w *world) {
		w.decide = probeThenMove
		id := w.mustSubmit(t, "train", usual)
		w.until(t, id, func(r *reconcile.Record) bool { return r.Phase == reconcile.Changing })
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

func TestNothingIsDecidedAboutASuspendedJob(t *testing.T) {
	t.Parallel()
	for _, when := range []reconcile.Phase{reconcile.Profiling, reconcile.Changing} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			w.decide = probeThenMove
			s := w.answering(t, "train")
			w.until(t, s.id, func(r *reconcile.Record) bool { return r.Phase == when })
			s.changed = func(j *driver.Job) { j.Suspended = true }
			for range 10 {
				if err := w.look(s.id); err != nil {
					t.Fatal(err)
				}
			}
			rec, err := w.records.Load(t.Context(), s.id)
			if err != nil || rec.Phase != when || slices.ContainsFunc(w.trace, func(s string) bool { return strings.Contains(s, "advance") }) {
				t.Errorf("it is %s, trace %q; want %s and no step: %v", rec.Phase, w.trace, when, err)
			}
			s.changed = nil
			if _, job := w.end(t, s.id); len(job.Attempts) != 3 {
				t.Errorf("%d attempts, want 3", len(job.Attempts))
			}
		})
	}
}

func TestWhatWasMeasuredOfAJobThatNeverBeganIsAnotherJobs(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonProfiling) }
		w.profile = func(m *reconcile.Measurement) { m.Joules, m.Source = new(tuning.Joules(7)), "rapl" }
		s := w.answering(t, "train")
		w.until(t, s.id, func(r *reconcile.Record) bool { return r.Done() > 2 })
		s.changed = func(j *driver.Job) { j.State, j.Ended = driver.NotStarted, time.Now() }
		rec := w.until(t, s.id, func(r *reconcile.Record) bool { return r.Phase.Over() })
		if rec.Done() != 0 || rec.Peak != 0 || len(rec.Outside()) != 0 || len(w.lessons) != 0 {
			t.Errorf("%d epochs, peak %d, joules %+v, lessons %+v; want none", rec.Done(), rec.Peak, rec.Outside(), w.lessons)
		}
	})
}

func TestAnAttemptThatWasNotOursIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.policy.Knobs = append(w.policy.Knobs, tuning.Knob{Name: tuning.Memory, Min: tuning.Number(1 << 20), Max: tuning.Number(1 << 40)})
		w.recall = func(reconcile.Question) reconcile.Recollection {
			return reconcile.Recollection{Knowledge: tuning.Knowledge{KindSeconds: 2}}
		}
		small := cores(2).With(tuning.Memory, tuning.Number(32<<20))
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
		if len(rec.Harmed) != 1 || !rec.Harmed[0].Equal(small) || len(w.lessons) != 1 || len(w.lessons[0].Regressed) == 0 {
			t.Errorf("hurt by %v, lessons %+v; want the small memory remembered", rec.Harmed, w.lessons)
		}
		if w.lessons[0].Peak < 32<<20 {
			t.Errorf("learned a peak of %s, want at least the limit that it outgrew", w.lessons[0].Peak.Human())
		}
		if rec.Restarted() != 1 || len(rec.Restarts) != 0 || rec.Because() != tuning.ReasonOutOfMemory {
			t.Errorf("restarted %d times, of which %d count for the budget; reason %s", rec.Restarted(), len(rec.Restarts), rec.Because())
		}
		if rec.Toll == nil || rec.Toll.Seconds < 1 {
			t.Errorf("toll %+v; want that of the attempt that was killed", rec.Toll)
		}
		if looks := tuning.Count(rec.History, func(e reconcile.Entry) bool { return e.Trigger == reconcile.LookAgain }); looks != 1 {
			t.Errorf("looked again %d times, want once", looks)
		}
	})
}

func TestTheCostOfAnAttemptThatLessMemoryKilledIsKnownWhereOthersDisturbedTheNextOne(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.policy.Knobs = append(w.policy.Knobs, tuning.Knob{Name: tuning.Memory, Min: tuning.Number(1 << 20), Max: tuning.Number(1 << 40)})
		w.decide = func(s tuning.State) tuning.Decision {
			if s.Pending {
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRightSized, Settings: cores(4).With(tuning.Memory, tuning.Number(32<<20))}
			}
			return hold(tuning.ReasonAlreadyBest)
		}
		w.epoch = func(e *tuning.Epoch) { e.Polluted = true }
		rec, job := w.end(t, w.mustSubmit(t, "train", usual+" memory=64MiB"))
		killed := job.Attempts[0].Ended.Sub(job.Attempts[0].Started).Seconds()
		if rec.Toll == nil || rec.Toll.Kind || rec.Toll.Seconds < killed || rec.Toll.Seconds > killed+1 || rec.Toll.Harm <= 0 {
			t.Errorf("toll %+v; want harm, of the %.1f s of the attempt that was killed", rec.Toll, killed)
		}
	})
}

func TestWhatTheSchedulerKnowsOfThePeakCountsToo(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonProfiling) }
		s := w.answering(t, "train")
		w.until(t, s.id, func(r *reconcile.Record) bool { return r.Done() > 2 })
		s.changed = func(j *driver.Job) {
			j.State, j.Ended, j.Attempts[0].Peak = driver.Failed, time.Now(), 90<<20 // after its last sample
		}
		w.until(t, s.id, func(r *reconcile.Record) bool { return r.Phase.Over() })
		if len(w.lessons) != 1 || w.lessons[0].Peak != 90<<20 {
			t.Errorf("lessons %+v; want a peak of 90 MiB", w.lessons)
		}
	})
}

func TestAJobThatOutgrewItsOwnersMemoryTeachesThatItNeedsAllOfIt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, behaviour string
		peak            tuning.Bytes
		end             tuning.End
	}{
		{"before its first sample", "epochs=9 seconds=2 memory=200MiB\n#SBATCH --mem=100M", 100 << 20, tuning.EndMemory},
		{"it did not", "epochs=9 seconds=2 memory=50MiB\n#SBATCH --mem=100M", 1 << 20, tuning.EndReached},
	} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			w.policy.Knobs = append(w.policy.Knobs, tuning.Knob{Name: tuning.Memory, Min: tuning.Number(1 << 20), Max: tuning.Number(1 << 40)})
			w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonAlreadyBest) }
			w.end(t, w.mustSubmit(t, "train", tc.behaviour))
			if len(w.lessons) != 1 || w.lessons[0].Peak != tc.peak || w.lessons[0].End != tc.end {
				t.Errorf("%s: lessons %+v, want a peak of %s and the end %s", tc.name, w.lessons, tc.peak.Human(), tc.end)
			}
		})
	}
}

func TestLessMemoryThatSufficesIsNotBlamedForWhatOtherRunsTook(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		kind    float64 // seconds of an epoch of other runs; this one takes 2
		setting tuning.Settings
		unknown bool
	}{
		{"memory alone, and it took a little longer", 1.9, cores(4).With(tuning.Memory, tuning.Number(1<<30)), true},
		{"memory alone, and it took far longer", 1, cores(4).With(tuning.Memory, tuning.Number(1<<30)), false},
		{"other cores too", 1.9, cores(2).With(tuning.Memory, tuning.Number(1<<30)), false},
	} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			w.policy.Knobs = append(w.policy.Knobs, tuning.Knob{Name: tuning.Memory, Min: tuning.Number(1 << 20), Max: tuning.Number(1 << 40)})
			w.recall = func(reconcile.Question) reconcile.Recollection {
				return reconcile.Recollection{Knowledge: tuning.Knowledge{KindSeconds: tc.kind}}
			}
			w.decide = func(s tuning.State) tuning.Decision {
				if s.Pending {
					return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRightSized, Settings: tc.setting}
				}
				return hold(tuning.ReasonAlreadyBest)
			}
			rec, _ := w.end(t, w.mustSubmit(t, "train", "epochs=10 seconds=2 parallel=0 memory=64MiB"))
			if got := rec.Toll == nil; got != tc.unknown {
				t.Errorf("%s: toll %+v", tc.name, rec.Toll)
			}
		})
	}
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

func TestAJobThatBeginsBeforeItIsChangedIsWatchedAsItRuns(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(s tuning.State) tuning.Decision {
			switch {
			case s.Pending:
				time.Sleep(3 * time.Second) // it is placed meanwhile
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: cores(2)}
			case s.Measured != tuning.ReasonNone:
				return hold(tuning.ReasonProfiling)
			case s.Restarts == 0:
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: cores(2)}
			}
			return hold(tuning.ReasonAlreadyBest)
		}
		rec, job := w.end(t, w.mustSubmit(t, "train", usual))
		if len(job.Attempts) != 2 || job.State != driver.Succeeded || !rec.Settings(0).Equal(cores(2)) {
			t.Errorf("%d attempts, %s under %s; want 2, succeeded under two cores", len(job.Attempts), job.State, rec.Settings(0))
		}
		began := reconcile.Arrow{From: reconcile.Changing, To: reconcile.Waiting, By: reconcile.IntentVoid}
		if !slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool {
			return reconcile.Arrow{From: e.From, To: e.To, By: e.Trigger} == began && e.Reason == tuning.ReasonBeganFirst
		}) {
			t.Errorf("the history does not say that it began first: %+v", rec.History)
		}
	})
}

// A bigger change would only keep it waiting for longer. What needs no more room is open to
// it; where it begins as it is, all of what is known of it counts again once it runs.
func TestAJobThatWaitsAndIsToHaveMoreThanThereIsRoomForGetsNoMoreThanItAsksFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		smaller bool // something is known that needs no more room
		intents int  // while it waits
		reason  tuning.Reason
		runs    []int // cores of its attempts
	}{
		{"nothing smaller is known", false, 1, tuning.ReasonNoRoom, []int{4, 8}},
		{"something smaller is better than what it has", true, 2, tuning.ReasonRecalled, []int{2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n1", Cores: 8, MemoryBytes: 64 << 30}}}, func(t *testing.T, w *world) {
				w.site.AboveRequest = true
				move := func(n int) tuning.Decision {
					return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: cores(n)}
				}
				w.decide = func(s tuning.State) tuning.Decision {
					switch {
					case s.Pending && s.Site.AboveRequest:
						return move(8)
					case s.Pending && c.smaller && !s.Current.Equal(cores(2)):
						return move(2)
					case s.Measured != tuning.ReasonNone:
						return hold(tuning.ReasonProfiling)
					case !s.Pending && s.Restarts == 0 && s.Site.AboveRequest:
						return move(8)
					}
					return hold(tuning.ReasonAlreadyBest)
				}
				for _, name := range []string{"before", "beside"} { // they have the whole node
					w.mustSubmit(t, name, "epochs=30 seconds=2")
				}
				time.Sleep(2 * time.Second)
				id := w.mustSubmit(t, "train", usual)
				w.fault(sim.OpAdvance, driver.ErrNoRoom)
				for range 40 {
					if err := w.look(id); err != nil {
						t.Fatal(err)
					}
					if rec, err := w.records.Load(t.Context(), id); err == nil && rec.NoRoom {
						w.fault(sim.OpAdvance, nil)
					}
				}
				rec, err := w.records.Load(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				told := slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool { return e.Reason == c.reason })
				if rec.State != driver.Pending || !told || len(w.audits) != c.intents || !c.smaller && rec.Reason != c.reason {
					t.Errorf("%s, %s, %s after %d intents; want it to wait, %s after %d", rec.State, rec.Phase, rec.Reason, len(w.audits), c.reason, c.intents)
				}
				rec, job := w.end(t, id)
				var runs []int
				for _, a := range job.Attempts {
					runs = append(runs, cmp.Or(a.Change.Cores, 4))
				}
				if !slices.Equal(runs, c.runs) || job.State != driver.Succeeded || !rec.Settings(0).Equal(cores(c.runs[len(c.runs)-1])) {
					t.Errorf("%s, attempts with %v cores, %s at last; want %v", job.State, runs, rec.Settings(0), c.runs)
				}
			})
		})
	}
}

// Two jobs fill a node and are both to have all of it.
func TestARunningJobThatIsToHaveMoreThanThereIsRoomForRunsOnAndIsAskedAgainLater(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{Nodes: []sim.NodeSpec{{Name: "n1", Cores: 8, MemoryBytes: 64 << 30}}}, func(t *testing.T, w *world) {
		w.site.AboveRequest = true
		w.decide = func(s tuning.State) tuning.Decision {
			switch {
			case s.Pending, s.Measured != tuning.ReasonNone:
				return hold(tuning.ReasonProfiling)
			case s.Restarts == 0:
				return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonPredicted, Settings: cores(8)}
			}
			return hold(tuning.ReasonAlreadyBest)
		}
		one, two := w.mustSubmit(t, "one", "epochs=60 seconds=8 parallel=1 checkpoint=1s"), w.mustSubmit(t, "two", "epochs=200 seconds=8 parallel=1 checkpoint=1s")
		for range 40 {
			for _, id := range []driver.JobID{one, two} {
				if err := w.look(id); err != nil {
					t.Fatal(err)
				}
			}
		}
		tries := len(w.audits)
		for _, id := range []driver.JobID{one, two} {
			rec, err := w.records.Load(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if rec.State != driver.Running || rec.Reason != tuning.ReasonNoRoom || len(rec.Restarts) != 0 || len(rec.Runs) != 1 || rec.Expired != 0 {
				t.Errorf("%s: %s, %s, restarts %v in %d runs; want it to run on since there is no room", id, rec.State, rec.Reason, rec.Restarts, len(rec.Runs))
			}
		}
		if tries < 4 || tries > 20 {
			t.Errorf("%d intents, want some and not one with each look", tries)
		}
		if _, job := w.end(t, one); len(job.Attempts) != 1 || job.State != driver.Succeeded {
			t.Errorf("the first: %s after %d attempts", job.State, len(job.Attempts))
		}
		if rec, job := w.end(t, two); len(job.Attempts) != 2 || job.State != driver.Succeeded || len(rec.Restarts) != 1 || !rec.Settings(0).Equal(cores(8)) {
			t.Errorf("the second: %s after %d attempts under %s, want 8 cores once the first has ended", job.State, len(job.Attempts), rec.Settings(0))
		}
	})
}

func TestAJobThatFoundNoRoomGoesBackToItsOwnersSettingsAtOnce(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		worse := false
		w.decide = func(s tuning.State) tuning.Decision {
			switch {
			case s.Pending, s.Measured != tuning.ReasonNone:
				return hold(tuning.ReasonProfiling)
			case s.Probes == 0:
				return tuning.Decision{Action: tuning.Probe, Reason: tuning.ReasonUnknownProbe, Settings: cores(1)}
			case worse:
				return tuning.Decision{Action: tuning.RollBack, Reason: tuning.ReasonStopLoss, Settings: s.Own}
			}
			return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonPredicted, Settings: cores(2)}
		}
		id := w.mustSubmit(t, "train", "epochs=60 seconds=8 parallel=1 checkpoint=1s")
		until := func(what func(*reconcile.Record) bool) *reconcile.Record {
			for range 1000 {
				if err := w.look(id); err != nil {
					t.Fatal(err)
				}
				if rec, err := w.records.Load(t.Context(), id); err == nil && what(rec) {
					return rec
				}
			}
			rec, _ := w.records.Load(t.Context(), id)
			t.Fatalf("it does not come to that: %s, %s, %s, %d runs, room at %s", rec.State, rec.Phase, rec.Reason, len(rec.Runs), rec.RoomAt)
			return nil
		}
		until(func(r *reconcile.Record) bool { return len(r.Runs) == 2 })
		w.fault(sim.OpAdvance, driver.ErrNoRoom)
		again := until(func(r *reconcile.Record) bool { return !r.RoomAt.IsZero() }).RoomAt
		w.fault(sim.OpAdvance, nil)
		worse = true
		rec := until(func(r *reconcile.Record) bool { return r.Move != nil })
		if now := time.Now(); !now.Before(again) || rec.Move.Decision.Action != tuning.RollBack {
			t.Errorf("%s at %s, want it to go back before %s", rec.Move.Decision.Action, now, again)
		}
	})
}

func TestAStopLossThatIsRefusedCutsNoEpochBeforeItIsCarriedOut(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		refusal  error
		cap      int
		reason   tuning.Reason
		restarts int // in the end
	}{
		{driver.ErrNoRoom, 0, tuning.ReasonNoRoom, 2},
		{driver.ErrDenied, 0, tuning.ReasonDenied, 1}, // it is not asked for without end
		{nil, 1, tuning.ReasonSiteCap, 1},
	} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			w.decide = func(s tuning.State) tuning.Decision {
				switch {
				case s.Pending, s.Measured != tuning.ReasonNone:
					return hold(tuning.ReasonProfiling)
				case s.Restarts == 0:
					return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonPredicted, Settings: cores(2)}
				case !s.Current.Equal(s.Own):
					return tuning.Decision{Action: tuning.RollBack, Reason: tuning.ReasonStopLoss, Settings: s.Own, Discard: true}
				}
				return hold(tuning.ReasonAlreadyBest)
			}
			id := w.mustSubmit(t, "train", "epochs=60 seconds=8 parallel=1 checkpoint=1s")
			story := func() *reconcile.Record {
				if err := w.look(id); err != nil {
					t.Fatal(err)
				}
				rec, err := w.records.Load(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				return rec
			}
			for len(story().Runs) < 2 {
			}
			w.site.TotalRestarts = tc.cap
			w.fault(sim.OpAdvance, tc.refusal)
			var rec *reconcile.Record
			for range 80 {
				rec = story()
			}
			if n := len(w.audits); rec.Reason != tc.reason || len(rec.Cut) > 0 || len(rec.Harmed) > 1 || len(rec.Restarts) != 1 || n < 3 && tc.cap == 0 || n > 12 {
				t.Errorf("%s, %d epochs cut, hurt by %v, %d restarts, %d intents", rec.Reason, len(rec.Cut), rec.Harmed, len(rec.Restarts), n)
			}
			w.fault(sim.OpAdvance, nil)
			if again, err := w.loop.Reconcile(t.Context(), id); again <= 0 || err != nil {
				t.Errorf("the next reconciliation comes after %s: %v", again, err)
			}
			if rec, job := w.end(t, id); len(rec.Cut) != tc.restarts-1 || len(rec.Restarts) != tc.restarts || rec.Settings(0).Equal(cores(4)) != (tc.restarts > 1) || job.State != driver.Succeeded {
				t.Errorf("%s: %d epochs cut, %d restarts, %s under %s", tc.reason, len(rec.Cut), len(rec.Restarts), job.State, rec.Settings(0))
			}
		})
	}
}
