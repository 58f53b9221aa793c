package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

func TestARestartOfTheControllerForgetsNoRegression(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.site.PauseAfter, w.pauseFails = 2, true
		w.decide, w.compare = full, worse
		for i, name := range []string{"a", "b", "c", "d"} {
			w.end(t, w.mustSubmit(t, name, usual))
			if want := (i + 1) / 2; len(w.pauses) != want {
				t.Errorf("after %d regressions with a restart after each, %d pauses, want %d", i+1, len(w.pauses), want)
			}
			w.restart()
		}
	})
}

func TestAPauseThatWasLiftedForgivesWhatCameBefore(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.site.PauseAfter = 2
		w.decide, w.compare = full, worse
		for _, name := range []string{"a", "b"} {
			w.end(t, w.mustSubmit(t, name, usual))
			time.Sleep(time.Minute)
			w.cleared = time.Now()
			w.restart()
		}
		if len(w.pauses) != 0 {
			t.Errorf("%d pauses, want none: each regression was forgiven", len(w.pauses))
		}
	})
}

func TestAJobThatItsSchedulerForgotIsLost(t *testing.T) {
	t.Parallel()
	moved := func(r *reconcile.Record) bool { return len(r.Restarts) == 1 && r.Move == nil }
	for _, tc := range []struct {
		name   string
		decide func(tuning.State) tuning.Decision
		until  func(r *reconcile.Record) bool
		reason tuning.Reason
		pauses int
	}{
		{"it had been moved, and ended while no controller ran", probeThenMove, moved, tuning.ReasonLost, 0},
		{"it had been moved", probeThenMove, func(r *reconcile.Record) bool { return len(r.Restarts) == 1 }, tuning.ReasonLost, 1},
		{"it had been probed", probeThenMove, func(r *reconcile.Record) bool { return len(r.Probed) == 1 }, tuning.ReasonLost, 1},
		{
			"the first step was just asked for", probeThenMove,
			func(r *reconcile.Record) bool { return r.Move != nil && r.Move.Tried },
			tuning.ReasonLost, 1,
		},
		{
			"it was never touched",
			func(tuning.State) tuning.Decision { return hold(tuning.ReasonTooShort) },
			func(r *reconcile.Record) bool { return r.Phase == reconcile.Settled && len(r.Epochs) > 3 },
			tuning.ReasonLost, 0,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.decide = tc.decide
				id := w.mustSubmit(t, "train", usual)
				w.until(t, id, tc.until)
				if strings.Contains(tc.name, "no controller ran") {
					w.restart()
				}
				w.fault(sim.OpGet, driver.ErrNotFound)
				if err := w.drive(id); err != nil {
					t.Fatal(err)
				}
				rec, err := w.records.Load(w.ctx, id)
				if err != nil || rec.Phase != reconcile.Ended || rec.Reason != tc.reason || rec.State != driver.Lost || rec.Move != nil {
					t.Errorf("%s because of %s, state %s, move %v (%v); want ended, lost", rec.Phase, rec.Reason, rec.State, rec.Move, err)
				}
				if len(w.pauses) != tc.pauses {
					t.Errorf("%d pauses, want %d", len(w.pauses), tc.pauses)
				}
				if len(w.lessons) != 1 || len(w.lessons[0].Trials) == 0 || w.lessons[0].Final != nil {
					t.Errorf("lessons %+v, want one of what was measured until then", w.lessons)
				}
			})
		})
	}
}

func TestAnAttemptIsAskedForUntilItsLastWordsAreIn(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = probeThenMove
		id := w.mustSubmit(t, "train", "epochs=100 seconds=2 checkpoint=500ms parallel=0")
		w.until(t, id, func(r *reconcile.Record) bool { return len(r.Runs) == 3 })
		w.until(t, id, func(r *reconcile.Record) bool { return r.Runs[1].Read })
		before := w.asked[2]
		rec, job := w.end(t, id)
		if w.asked[2] != before || before == 0 {
			t.Errorf("attempt 2 was asked for %d times, and %d times after its story was complete", before, w.asked[2]-before)
		}
		// The controller was late for the attempts' ends, and lost nothing.
		if rec.Done() != 100 || len(rec.Epochs) != 100 || job.State != driver.Succeeded {
			t.Errorf("%d epochs of %d are known, the job %s", len(rec.Epochs), rec.Done(), job.State)
		}
		if w.asked[1] > 60 || w.asked[3] < 100 {
			t.Errorf("asked %d times for attempt 1, %d times for attempt 3 of some minutes", w.asked[1], w.asked[3])
		}
	})
}

func TestABudgetOfJoulesNeedsNoCompleteMeasurement(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.epoch = func(e *tuning.Epoch) {
			if e.Number != 2 { // one epoch has none
				e.Joules, e.Source = new(tuning.Joules(100)), "rapl"
			}
		}
		most := tuning.Joules(0)
		w.decide = func(s tuning.State) tuning.Decision {
			if s.Joules != nil {
				most = max(most, *s.Joules)
				if s.JoulesSource != "rapl" {
					t.Errorf("joules from %q, want rapl", s.JoulesSource)
				}
			}
			return hold(tuning.ReasonProfiling)
		}
		rec, _ := w.end(t, w.mustSubmit(t, "train", usual))
		if most < 900 {
			t.Errorf("the planner saw %g J at most, want those of the epochs that have any", float64(most))
		}
		if sum, _ := rec.Joules(); sum != nil {
			t.Errorf("the job claims %g J in all, and one epoch has none", float64(*sum))
		}
	})
}

func TestSpentJoulesAreALowerBound(t *testing.T) {
	t.Parallel()
	of := func(source string, joules ...float64) (out []tuning.Epoch) {
		for _, j := range joules {
			e := tuning.Epoch{Source: source}
			if j >= 0 {
				e.Joules = new(tuning.Joules(j))
			}
			out = append(out, e)
		}
		return out
	}
	for _, tc := range []struct {
		name     string
		epochs   []tuning.Epoch
		modelled bool
		want     float64 // below 0: none
		source   string
	}{
		{"nothing was measured", of("rapl", -1, -1), true, -1, ""},
		{"no epochs", nil, false, -1, ""},
		{"all were", of("rapl", 1, 2), false, 3, "rapl"},
		{"what is missing counts as no less than nothing", of("rapl", 1, -1, 2), false, 3, "rapl"},
		{"zero is measured", of("rapl", 0), false, 0, "rapl"},
		{"computed ones alone are called so", of(tuning.Modelled, 5, -1), false, 5, tuning.Modelled},
		{"computed ones do not mix in", slices.Concat(of("rapl", 1), of(tuning.Modelled, 5)), false, 1, "rapl"},
		{"but where the site says so", slices.Concat(of("rapl", 1), of(tuning.Modelled, 5)), true, 6, "rapl"},
	} {
		r := reconcile.Record{Course: reconcile.Course{Epochs: tc.epochs}}
		got, source := r.SpentJoules(tc.modelled)
		if (got == nil) != (tc.want < 0) || got != nil && float64(*got) != tc.want || source != tc.source {
			t.Errorf("%s: got %v from %q, want %g from %q", tc.name, got, source, tc.want, tc.source)
		}
	}
}

func TestWhatOneSourceComputedIsNoMeasuredSum(t *testing.T) {
	t.Parallel()
	r := reconcile.Record{
		Course: reconcile.Course{Epochs: []tuning.Epoch{
			{Joules: new(tuning.Joules(1)), Source: tuning.Modelled}, {Joules: new(tuning.Joules(2)), Source: "rapl"},
		}},
	}
	if sum, source := r.Joules(); sum == nil || *sum != 3 || source != tuning.Modelled {
		t.Errorf("got %v from %q, want 3 from modelled", sum, source)
	}
}

func TestJoulesOfAJobLackNoEpoch(t *testing.T) {
	t.Parallel()
	of := func(numbers ...int) *reconcile.Record {
		var r reconcile.Record
		for _, n := range numbers {
			r.Epochs = append(r.Epochs, tuning.Epoch{Number: n, Joules: new(tuning.Joules(1)), Source: "rapl"})
		}
		return &r
	}
	for _, c := range []struct {
		name string
		r    *reconcile.Record
		want bool
	}{
		{"all epochs", of(1, 2, 3), true},
		{"one was done again", of(1, 2, 2, 3), true},
		{"it goes on from a checkpoint", of(7, 8), true},
		{"an exporter was restarted in the second", of(1, 3), false},
	} {
		if sum, _ := c.r.Joules(); (sum != nil) != c.want {
			t.Errorf("%s: %v", c.name, sum)
		}
	}
}

func TestJoulesOfAJobAreThoseOfItsAttemptsNotOfItsEpochsAlone(t *testing.T) {
	t.Parallel()
	epoch := func(attempt int, source string) tuning.Epoch {
		return tuning.Epoch{Number: attempt, Attempt: attempt, Joules: new(tuning.Joules(10)), Source: source}
	}
	run := func(attempt int, joules float64, source string) reconcile.Run {
		return reconcile.Run{Attempt: attempt, Joules: new(tuning.Joules(joules)), Source: source}
	}
	two := []tuning.Epoch{epoch(1, "rapl"), epoch(2, "rapl")}
	for _, c := range []struct {
		name   string
		course reconcile.Course
		want   tuning.Joules // below 0: unknown
		source string
		spent  tuning.Joules // at least, by what was measured
	}{
		{"no attempt was counted", reconcile.Course{Epochs: two, Runs: []reconcile.Run{{Attempt: 1}, {Attempt: 2}}}, 20, "rapl", 20},
		{"both were", reconcile.Course{Epochs: two, Runs: []reconcile.Run{run(1, 15, "rapl"), run(2, 500, "rapl")}}, 515, "rapl", 515},
		{"one was", reconcile.Course{Epochs: two, Runs: []reconcile.Run{{Attempt: 1}, run(2, 500, "rapl")}}, 510, "rapl", 510},
		{"an exporter that began again counted less than the epochs", reconcile.Course{Epochs: two, Runs: []reconcile.Run{run(1, 3, "rapl"), run(2, 30, "rapl")}}, 40, "rapl", 40},
		{"an attempt ended before its first epoch", reconcile.Course{Epochs: two[1:], Runs: []reconcile.Run{run(1, 7, "rapl"), run(2, 30, "rapl")}}, 37, "rapl", 37},
		{"a part was computed", reconcile.Course{Epochs: two, Runs: []reconcile.Run{run(1, 15, tuning.Modelled), run(2, 30, "rapl")}}, 45, tuning.Modelled, 40},
		{"those of an earlier job file count once", reconcile.Course{Earlier: two[:1], Epochs: two[1:], Runs: []reconcile.Run{run(1, 15, "rapl"), run(2, 10, "rapl")}}, 25, "rapl", 25},
		{"an epoch that was not measured", reconcile.Course{Epochs: []tuning.Epoch{{Number: 1, Attempt: 1}}, Runs: []reconcile.Run{run(1, 30, "rapl")}}, -1, "", 30},
		{"of a part of the nodes", reconcile.Course{Epochs: []tuning.Epoch{epoch(1, "rapl, 1 of 2 nodes")}, Runs: []reconcile.Run{run(1, 30, "rapl, 1 of 2 nodes")}}, 30, "rapl, 1 of 2 nodes", 30},
	} {
		r := reconcile.Record{Course: c.course}
		got, source := r.Joules()
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want || source != c.source {
			t.Errorf("%s: %v from %q, want %g from %q", c.name, got, source, float64(c.want), c.source)
		}
		if spent, _ := r.SpentJoules(false); *spent != c.spent {
			t.Errorf("%s: it has spent %g, want %g", c.name, float64(*spent), float64(c.spent))
		}
	}
}

func TestWhatAJobUsesAfterItsLastEpochIsKept(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonTooShort) }
		counted := tuning.Joules(0)
		w.epoch = func(e *tuning.Epoch) { e.Joules, e.Source = new(tuning.Joules(1)), "rapl" }
		w.profile = func(m *reconcile.Measurement) {
			counted += 1000
			m.Joules, m.Source = new(counted), "rapl"
		}
		rec, _ := w.end(t, w.mustSubmit(t, "train", usual))
		if got, source := rec.Joules(); got == nil || *got != counted || source != "rapl" {
			t.Errorf("%v from %q, want %g from rapl", got, source, float64(counted))
		}
	})
}

func TestAJobOfDisturbedEpochsSaysSo(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		every int // each so many-th epoch is left alone
		want  bool
	}{{"most were", 4, true}, {"few were", 1, false}} {
		inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
			w.epoch = func(e *tuning.Epoch) { e.Polluted = e.Number%tc.every != 0 }
			w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonProfiling) }
			w.end(t, w.mustSubmit(t, "train", usual))
			if got := w.lessons[0].Polluted; got != tc.want {
				t.Errorf("%s: the lesson says polluted %t", tc.name, got)
			}
		})
	}
}

func TestThePlannerIsToldHowLongUntunedJobsOfTheKindTook(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.recall = func(q reconcile.Question) reconcile.Recollection {
			if !q.Own.Equal(cores(4)) || q.Kind.Name != "train" {
				t.Errorf("asked about %s with %s", q.Kind, q.Own)
			}
			return reconcile.Recollection{Knowledge: tuning.Knowledge{KindSeconds: 2.5, KindRuns: 3}}
		}
		asked := 0
		w.decide = func(s tuning.State) tuning.Decision {
			asked++
			if s.KindSeconds != 2.5 || s.KindRuns != 3 {
				t.Errorf("told %g s over %d runs, want 2.5 over 3", s.KindSeconds, s.KindRuns)
			}
			return hold(tuning.ReasonTooShort)
		}
		w.end(t, w.mustSubmit(t, "train", usual))
		if asked == 0 {
			t.Error("never asked")
		}
	})
}

// The learned profile is the classified one, whatever the later epochs looked like; the peak
// is that of all epochs.
func TestTheFirstUsableProfileIsTheOneThatIsLearned(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonTooShort) }
		w.profile = func(m *reconcile.Measurement) {
			m.Profile.Epochs = len(m.Epochs)
			m.Peak = tuning.Bytes(len(m.Epochs)) << 30
		}
		w.end(t, w.mustSubmit(t, "train", usual))
		l := w.lessons[0]
		if len(l.Profiles) != 1 || l.Profiles[0].Epochs > 3 || l.Peak != 12<<30 {
			t.Errorf("learned %+v with a peak of %d, want one of the early epochs and the peak of all 12", l.Profiles, l.Peak)
		}
		if l.Startup != 500*time.Millisecond {
			t.Errorf("learned a start of %s, want 500ms", l.Startup)
		}
	})
}

// The wait that the scheduler announces counts each time, so it is not part of what a
// restart costs. A wait that was not announced is, unless others were to go first.
func TestAnAnnouncedQueueIsNoPartOfTheCostOfARestart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		reason    tuning.Reason
		announced *time.Duration
		low, high time.Duration
	}{
		{"announced", tuning.ReasonProbeWon, new(time.Minute), 0, 10 * time.Second},
		{"half of it announced", tuning.ReasonProbeWon, new(30 * time.Second), 30 * time.Second, 40 * time.Second},
		{"twice as much announced", tuning.ReasonProbeWon, new(2 * time.Minute), 0, 10 * time.Second},
		{"it is unknown", tuning.ReasonProbeWon, nil, time.Minute, 70 * time.Second},
		{"the job made room for others", tuning.ReasonAllocation, nil, 0, 10 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.decide = func(s tuning.State) tuning.Decision {
					if s.Pending || s.Measured != tuning.ReasonNone || s.Restarts > 0 {
						return hold(tuning.ReasonProfiling)
					}
					return tuning.Decision{Action: tuning.Move, Reason: tc.reason, Settings: cores(1)}
				}
				w.outlook = func(driver.JobID) (driver.Outlook, error) { return driver.Outlook{Wait: tc.announced}, nil }
				rec, _ := w.end(t, w.mustSubmit(t, "train", usual+" parallel=0 queue_wait=1m"))
				if len(rec.RestartCosts) != 1 || rec.RestartCosts[0] < tc.low || rec.RestartCosts[0] > tc.high {
					t.Errorf("the restart cost %s, want from %s to %s", rec.RestartCosts, tc.low, tc.high)
				}
			})
		})
	}
}
