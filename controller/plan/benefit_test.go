package plan_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// foretold gives a state a forecast of its 36 epochs under its owner's settings.
func foretold(s *tuning.State, low, value, high float64) {
	epochs := tuning.Exactly(float64(s.EpochsTotal - s.EpochsDone))
	s.Forecast = &tuning.Forecast{
		Basis: tuning.BasisOwn, Measured: 3, Settings: s.Own, Epochs: &epochs,
		Seconds: &tuning.Estimate{Value: value, Low: low, High: high},
	}
}

// sure is a forecast that is nearly certain.
func sure(s *tuning.State) { foretold(s, 35, 36, 37) }

func known(s *tuning.State, logRatio, sd float64) {
	e := effect(tuning.Settings{tuning.Cores: tuning.Number(2)}, logRatio)
	e.SD = sd
	s.KindEffects = []tuning.Effect{e}
}

func TestTheLowEndOfASavingDecides(t *testing.T) {
	t.Parallel()
	costs := func(seconds float64) func(*tuning.State) {
		return func(s *tuning.State) { s.RestartCost = time.Duration(seconds * float64(time.Second)) }
	}
	all := func(changes ...func(*tuning.State)) func(*tuning.State) {
		return func(s *tuning.State) {
			for _, c := range changes {
				c(s)
			}
		}
	}
	good := func(s *tuning.State) { known(s, -0.5, 0.05) }
	vague := func(s *tuning.State) { known(s, -0.2, 0.1) }
	wide := func(s *tuning.State) { foretold(s, 10, 36, 120) }
	decideAll(t, []row{
		{"a saving that is sure is taken", running, all(good, sure, costs(3)), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"one whose remaining saving is unknown is not", running, all(good, wide, costs(3)), tuning.Hold, tuning.ReasonUncertain, nil},
		{"it is where the restart costs little", running, all(good, wide, costs(1)), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"an effect that runs disagree about must save more", running, all(vague, sure, costs(3)), tuning.Hold, tuning.ReasonUncertain, nil},
		{"and is taken where it does", running, all(vague, sure, costs(1)), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"what would not pay at its best either is not called uncertain", running, all(good, wide, costs(12)), tuning.Hold, tuning.ReasonTooShort, nil},
		{"a probe that won by little that is sure is not gone back to", probed, func(s *tuning.State) {
			s.Current = cores(2).With("prefetch", tuning.Number(64))
			s.Trials = append(s.Trials, tuning.Trial{Settings: s.Current, Epochs: 2, Seconds: 0.7})
			s.RestartCost = 3 * time.Second
		}, tuning.Hold, tuning.ReasonUncertain, nil},
		{"on the way back to its owner's settings the value decides", probed, func(s *tuning.State) {
			s.BestError, s.Trials[1].Seconds = 0.4, 1.15
			sure(s)
			costs(3)(s)
		}, tuning.RollBack, tuning.ReasonProbesNoGain, cores(1)},
		{"a probe that its owner refuses is left for the best one, although that saves nothing", probed, func(s *tuning.State) {
			s.Current = cores(2).With("prefetch", tuning.Number(64))
			s.Trials = append(s.Trials, tuning.Trial{Settings: s.Current, Epochs: 2, Seconds: 0.2})
			s.Refused = tuning.ReasonQualityLost
		}, tuning.Move, tuning.ReasonQualityLost, cores(2)},
		{"and for its owner's settings where that would carry it past its time limit", probed, func(s *tuning.State) {
			s.Current = cores(2).With("prefetch", tuning.Number(64))
			s.Trials = append(s.Trials, tuning.Trial{Settings: s.Current, Epochs: 2, Seconds: 0.2})
			s.Refused, s.LimitLeft, s.Site.LimitReserve = tuning.ReasonQualityLost, 10*time.Second, time.Second
		}, tuning.RollBack, tuning.ReasonQualityLost, cores(1)},
		{"a probe that lost is left where the way home just pays", probed, func(s *tuning.State) {
			s.BestError, s.Trials[1].Seconds = 0.4, 1.15
			sure(s)
			s.RestartCost = 5 * time.Second
		}, tuning.RollBack, tuning.ReasonProbesNoGain, cores(1)},
		{"a probe is not made where the rest may be too short for it", running, all(wide, costs(2)), tuning.Hold, tuning.ReasonWorthless, nil},
		{"probes that lost much are expected to lose again", probed, func(s *tuning.State) {
			sure(s)
			s.Trials[1].Seconds, s.Best, s.BestGain = 8, nil, 0
			s.Current = cores(1)
			s.Next, s.NextReason = cores(2).With("prefetch", tuning.Number(64)), tuning.ReasonNone
		}, tuning.Hold, tuning.ReasonProbesNoGain, nil},
		{"joules times seconds pay a restart twice", running, all(good, sure, costs(4.5), func(s *tuning.State) {
			s.Policy.Objective = tuning.EDP
		}), tuning.Hold, tuning.ReasonUncertain, nil},
	})
}

func TestWhileTheRestIsUnknownNothingThatRunsIsMoved(t *testing.T) {
	t.Parallel()
	unknown := func(why tuning.Reason) func(*tuning.State) {
		return func(s *tuning.State) {
			known(s, -0.5, 0.05)
			s.Forecast = &tuning.Forecast{Reason: why}
		}
	}
	decideAll(t, []row{
		{"its epochs are not told", running, unknown(tuning.ReasonNoTotal), tuning.Hold, tuning.ReasonNoTotal, nil},
		{"none of them was measured", running, unknown(tuning.ReasonProfiling), tuning.Hold, tuning.ReasonProfiling, nil},
		{"the forecast is empty", running, func(s *tuning.State) { known(s, -0.5, 0.05); s.Forecast = &tuning.Forecast{} }, tuning.Hold, tuning.ReasonNoTotal, nil},
		{"what is pending is changed all the same", pending, unknown(tuning.ReasonNoTotal), tuning.Move, tuning.ReasonRecalled, cores(2)},
	})
}

func TestASavingIsToldInWhatTheObjectiveCounts(t *testing.T) {
	t.Parallel()
	measured := func(s *tuning.State) {
		known(s, -0.5, 0.05)
		sure(s)
		s.Forecast.Joules, s.Forecast.JoulesSource = &tuning.Estimate{Value: 3600, Low: 3500, High: 3700}, "rapl"
	}
	for _, c := range []struct {
		name    string
		of      tuning.Objective
		joules  bool
		unit    string
		restart float64 // of one second, the job's power being 100 W and its epoch one second
	}{
		{"time in seconds", tuning.Time, true, "seconds", 1},
		{"energy in joules", tuning.Energy, true, "joules", 100},
		{"energy that was not measured in epochs", tuning.Energy, false, "epochs", 1},
		{"joules times seconds in epochs, both factors", tuning.EDP, true, "epochs", 2},
		{"a blend in epochs", tuning.Blend, true, "epochs", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := running()
			measured(&s)
			s.RestartCost = time.Second
			s.Policy.Objective, s.Policy.Weight = c.of, 0.5
			if !c.joules {
				s.Forecast.Joules = nil
			}
			d := plan.Decide(s)
			if d.Action != tuning.Move || d.Prices == nil {
				t.Fatalf("%s because %s, prices %+v", d.Action, d.Reason, d.Prices)
			}
			if d.Prices.Unit != c.unit || math.Abs(d.Prices.Restart-c.restart) > 1e-9 {
				t.Errorf("a restart costs %g %s, want %g %s", d.Prices.Restart, d.Prices.Unit, c.restart, c.unit)
			}
			if cost, ok := number(d, "restart_cost_"+c.unit); !ok || math.Abs(cost-c.restart) > 1e-9 {
				t.Errorf("the evidence has a restart for %g (%v), want %g: %v", cost, ok, c.restart, d.Evidence)
			}
			saving, _ := number(d, "predicted_saving_"+c.unit)
			least, ok := number(d, "saving_at_least_"+c.unit)
			if !ok || !(least > 0 && least < saving) {
				t.Errorf("saves %g, at least %g", saving, least)
			}
		})
	}
}

// likely draws a job that could be moved to something known.
func likely(t *rapid.T) tuning.State {
	s := running()
	known(&s, rapid.Float64Range(-1.5, 0).Draw(t, "effect"), rapid.Float64Range(0, 0.4).Draw(t, "sd"))
	s.KindEffects[0].Runs = rapid.IntRange(1, 20).Draw(t, "runs")
	s.RestartCost = time.Duration(rapid.Float64Range(0, 20).Draw(t, "cost") * float64(time.Second))
	s.Wait = time.Duration(rapid.SampledFrom([]float64{0, 0, 1, 10}).Draw(t, "wait") * float64(time.Second))
	value := rapid.Float64Range(1, 100).Draw(t, "rest")
	foretold(&s, value*rapid.Float64Range(0, 1).Draw(t, "low"), value, value*rapid.Float64Range(1, 5).Draw(t, "high"))
	s.EpochSeconds = value / 36
	return s
}

func TestMoreKnowledgeNeverTurnsAMoveIntoAHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := likely(t)
		if plan.Decide(s).Action != tuning.Move {
			return
		}
		better := s
		e := s.KindEffects[0]
		switch rapid.IntRange(0, 4).Draw(t, "what") {
		case 0:
			f := *s.Forecast.Seconds
			foretold(&better, f.Low+rapid.Float64Range(0, 1).Draw(t, "closer")*(f.Value-f.Low), f.Value, f.High)
		case 1:
			e.Runs += rapid.IntRange(1, 9).Draw(t, "more runs")
		case 2:
			e.SD *= rapid.Float64Range(0, 1).Draw(t, "less spread")
		case 3:
			better.RestartCost = time.Duration(float64(s.RestartCost) * rapid.Float64Range(0, 1).Draw(t, "cheaper"))
		case 4:
			better.Wait = 0
		}
		better.KindEffects = []tuning.Effect{e}
		if d := plan.Decide(better); d.Action != tuning.Move {
			t.Fatalf("it moved, and with more known it is a %s because %s", d.Action, d.Reason)
		}
	})
}

func TestNothingMovesWhoseIntervalIncludesNoBenefit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := likely(t)
		d := plan.Decide(s)
		if d.Action != tuning.Move {
			return
		}
		for _, a := range d.Alternatives {
			if !a.Taken {
				continue
			}
			if a.Saving == nil || !(a.Saving.Low > 0) || !(a.Saving.Low > d.Prices.Margin*(d.Prices.Restart+d.Prices.Queue)) {
				t.Fatalf("it moves for %+v at %+v", a.Saving, d.Prices)
			}
			if a.Saving.Low > a.Saving.Value || a.Saving.Value > a.Saving.High {
				t.Fatalf("no interval: %+v", a.Saving)
			}
			return
		}
		t.Fatalf("what was taken is not among the alternatives: %+v", d.Alternatives)
	})
}
