package plan_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// metered is a job that took 5 s and 50 J so far and has 36 epochs of 1 s and 10 J left.
func metered(s *tuning.State) {
	sure(s)
	s.Elapsed = 5 * time.Second
	s.Forecast.Joules, s.Forecast.JoulesSource = &tuning.Estimate{Value: 360, Low: 350, High: 370}, "rapl"
	spent := tuning.Exactly(50)
	s.Forecast.Spent = &spent
}

// frugal is a setting that saves joules and takes a third longer.
func frugal(s *tuning.State) {
	metered(s)
	known(s, -0.5, 0.05)
	s.KindEffects[0].LogTime, s.Policy.Objective = 0.3, tuning.Energy
}

// hasty is a setting on twice the cores that saves time.
func hasty(s *tuning.State) {
	metered(s)
	known(s, -0.5, 0.05)
}

func budgetOf(joules tuning.Joules, seconds time.Duration) func(*tuning.State) {
	return func(s *tuning.State) { s.Policy.Budget.Energy, s.Policy.Budget.Time = joules, seconds*time.Second }
}

func TestABudgetIsLookedAtBeforeAChange(t *testing.T) {
	t.Parallel()
	and := func(changes ...func(*tuning.State)) func(*tuning.State) {
		return func(s *tuning.State) {
			for _, c := range changes {
				c(s)
			}
		}
	}
	asPending := func(s *tuning.State) { s.Elapsed = 0; s.EpochsTotal = 36; s.EpochSeconds = 1 }
	decideAll(t, []row{
		{"a slower setting that may overrun the time budget is not moved to", running, and(frugal, budgetOf(0, 50)), tuning.Hold, tuning.ReasonOverTime, nil},
		{"where there is time enough it is", running, and(frugal, budgetOf(0, 70)), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"where the owner's setting may overrun it as well, tuning for joules goes on", running, and(frugal, budgetOf(0, 41)), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"nor is a pending job given it", pending, and(asPending, frugal, budgetOf(0, 45)), tuning.Hold, tuning.ReasonOverTime, nil},
		{"a probe that may overrun the time budget is not made", running, and(metered, budgetOf(0, 45)), tuning.Hold, tuning.ReasonOverTime, nil},
		{"one that cannot is", running, and(metered, budgetOf(0, 48)), tuning.Probe, tuning.ReasonUnknownProbe, nil},
		{"the queue takes its time of the budget", running, and(metered, budgetOf(0, 46), func(s *tuning.State) { s.Wait = time.Second / 4 }), tuning.Hold, tuning.ReasonOverTime, nil},
		{"a faster setting on more cores may draw more power than the energy budget has", running, and(hasty, budgetOf(450, 0)), tuning.Hold, tuning.ReasonOverEnergy, nil},
		{"with joules enough it is moved to", running, and(hasty, budgetOf(700, 0)), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"one that is known to save joules keeps the budget", running, and(frugal, budgetOf(450, 0)), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"modelled joules forbid nothing", running, and(hasty, budgetOf(450, 0), func(s *tuning.State) { s.Forecast.JoulesSource = tuning.Modelled }), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"unless the site opts in", running, and(hasty, budgetOf(450, 0), func(s *tuning.State) {
			s.Forecast.JoulesSource, s.Site.EnforceModel = tuning.Modelled, true
		}), tuning.Hold, tuning.ReasonOverEnergy, nil},
		{"joules that were not measured forbid nothing, and are not zero", running, and(hasty, budgetOf(450, 0), func(s *tuning.State) {
			s.Forecast.Joules, s.Forecast.Spent = nil, nil
		}), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"joules of epochs that were not measured count as much as they may be", running, and(hasty, budgetOf(700, 0), func(s *tuning.State) {
			s.Forecast.Spent = &tuning.Estimate{Value: 200, Low: 50, High: 320}
		}), tuning.Hold, tuning.ReasonOverEnergy, nil},
		{"a setting measured to be slower in this job is not gone back to", probed, func(s *tuning.State) {
			s.Policy.Objective = tuning.Energy
			own, tuned := tuning.Joules(10), tuning.Joules(5)
			s.Trials[0].Joules, s.Trials[0].Source = &own, "rapl"
			s.Trials[1].Joules, s.Trials[1].Source, s.Trials[1].Seconds = &tuned, "rapl", 1.4
			s.Current = s.Own
			metered(s)
			budgetOf(0, 50)(s)
		}, tuning.Hold, tuning.ReasonOverTime, nil},
		{"where another probe was the worse one, its owner's settings keep the budget", probed, func(s *tuning.State) {
			s.Current = cores(2).With("prefetch", tuning.Number(64))
			s.Trials[1].Seconds = 1.4
			s.Policy.Objective, s.Policy.Quality = tuning.Energy, nil
			for i, j := range []tuning.Joules{10, 5, 20} {
				if i == len(s.Trials) {
					s.Trials = append(s.Trials, tuning.Trial{Settings: s.Current, Epochs: 2, Seconds: 1.5})
				}
				s.Trials[i].Joules, s.Trials[i].Source = &j, "rapl"
			}
			s.Best = &s.Trials[1]
			metered(s)
			budgetOf(0, 50)(s)
		}, tuning.RollBack, tuning.ReasonOverTime, cores(1)},
	})
}

func TestAJobThatOverrunsItsBudgetAnywayIsTold(t *testing.T) {
	t.Parallel()
	s := running()
	frugal(&s)
	budgetOf(300, 41)(&s)
	d := plan.Decide(s)
	if d.Action != tuning.Move || len(d.Budgets) != 2 {
		t.Fatalf("%s because %s, budgets %+v", d.Action, d.Reason, d.Budgets)
	}
	for _, b := range d.Budgets {
		if !b.Overruns || b.Own == nil || b.Change == nil {
			t.Errorf("%+v", b)
		}
	}
	if own := d.Budgets[1].Own; own.Value != 41 || own.High != 42 {
		t.Errorf("under its owner's settings it takes %+v, want 5 s and 36 s", own)
	}
	s.Forecast.Joules = nil
	for _, b := range plan.Decide(s).Budgets {
		if b.Of == "energy" && (b.Overruns || b.Own != nil || b.Unenforced != tuning.ReasonNoSamples) {
			t.Errorf("without measured joules it says %+v", b)
		}
	}
}

func TestNoChangeMayOverrunABudgetThatTheOwnersSettingsKeep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := likely(t)
		s.KindEffects[0].LogTime = rapid.Float64Range(-1, 1).Draw(t, "log time")
		s.Elapsed = time.Duration(rapid.Float64Range(0, 100).Draw(t, "elapsed") * float64(time.Second))
		s.Policy.Budget.Time = s.Elapsed + time.Duration(rapid.Float64Range(1, 300).Draw(t, "time budget")*float64(time.Second))
		s.Policy.Objective = rapid.SampledFrom(tuning.Objectives()).Draw(t, "objective")
		if rapid.Bool().Draw(t, "known") {
			s.KindEffects = nil
		}
		d := plan.Decide(s)
		if d.Action != tuning.Move && d.Action != tuning.Probe {
			return
		}
		if len(d.Budgets) != 1 {
			t.Fatalf("budgets %+v", d.Budgets)
		}
		b := d.Budgets[0]
		if !b.Overruns && (b.Change == nil || b.Change.High > b.Limit) {
			t.Fatalf("%s although %+v", d.Action, b)
		}
		if b.Own == nil || math.IsNaN(b.Own.High) || b.Own.Low > b.Own.High {
			t.Fatalf("%+v", b)
		}
	})
}
