package plan

import (
	"math"

	"pitchpipe/controller/tuning"
)

// unknownSlowdown is how many times as long an epoch under an unknown setting may take; with fewer
// cores it may take longer.
const unknownSlowdown = 2

type course struct{ seconds, joules *tuning.Estimate }

// restrainBudget holds a change that may overrun a budget which the owner's settings keep.
func restrainBudget(s view, d tuning.Decision) tuning.Decision {
	if d.Action != tuning.Move && !(d.Action == tuning.Probe && s.Pending) {
		return d
	}
	r, why := s.overBudget(d.Settings, false)
	if r == tuning.ReasonNone {
		return d
	}
	evidence := append(d.Evidence, why...)
	if s.Refused != tuning.ReasonNone && !s.Pending && !s.Current.Equal(s.Own) {
		return s.leave(s.Refused, evidence)
	}
	if _, measured := tuning.Reference(s.Trials); measured && !s.Pending && !s.Current.Equal(s.Own) {
		// The job is not under its owner's settings, which keep the budget.
		from, _ := s.present()
		if s.repays(s.saves(from, gain{}).Value, 1, r) == tuning.ReasonNone {
			return decide(s, tuning.RollBack, r, s.Own, evidence...)
		}
	}
	return hold(s, r, evidence...)
}

func (s view) overBudget(target tuning.Settings, probe bool) (tuning.Reason, []tuning.Evidence) {
	for _, b := range s.budgets(target, probe) {
		if b.Unenforced != tuning.ReasonNone || b.Overruns || b.Change == nil || !(b.Change.High > b.Limit) {
			continue
		}
		r, unit := tuning.ReasonOverTime, "seconds"
		if b.Of == "energy" {
			r, unit = tuning.ReasonOverEnergy, "joules"
		}
		return r, []tuning.Evidence{
			{Name: "budget_" + unit, Value: b.Limit},
			{Name: "with_change_at_most_" + unit, Value: b.Change.High},
			{Name: "as_owned_at_most_" + unit, Value: b.Own.High},
		}
	}
	return tuning.ReasonNone, nil
}

func (s view) budgets(target tuning.Settings, probe bool) []tuning.BudgetOutlook {
	own, change := s.under(s.Own, false), course{}
	if len(target) > 0 {
		change = s.under(target, probe)
	}
	var out []tuning.BudgetOutlook
	for _, x := range []struct {
		tuning.BudgetOutlook

		unknown tuning.Reason
	}{
		{tuning.BudgetOutlook{Of: "energy", Limit: float64(s.Policy.Budget.Energy), Own: own.joules, Change: change.joules}, tuning.ReasonNoSamples},
		{tuning.BudgetOutlook{Of: "time", Limit: s.Policy.Budget.Time.Seconds(), Own: own.seconds, Change: change.seconds}, tuning.ReasonProfiling},
	} {
		b := x.BudgetOutlook
		switch {
		case b.Limit <= 0:
			continue
		case b.Own == nil:
			b.Unenforced = x.unknown
		case b.Of == "energy" && tuning.IsModelled(s.Forecast.JoulesSource) && !s.Site.EnforceModel:
			b.Unenforced = tuning.ReasonModelled
		}
		b.Overruns = b.Own != nil && b.Own.High > b.Limit
		out = append(out, b)
	}
	return out
}

// under is what was used, the restarts, and the rest under a setting. After a probe the rest is
// under the owner's settings. nil: unknown or not finite.
func (s view) under(t tuning.Settings, probe bool) course {
	f := s.Forecast
	if !f.IsKnown() {
		return course{}
	}
	restarts, share := 1.0, 1.0 // of the rest under t
	switch left := float64(s.EpochsTotal - s.EpochsDone); {
	case probe && left > 0:
		restarts, share = 2, math.Min(float64(s.epochsPerProbe())/left, 1)
	case probe:
		restarts = 2
	case s.Pending || t.Equal(s.Current):
		restarts = 0
	}
	// The forecast is for the owner's settings; the effect of others is taken out.
	seconds, joules := s.times(t)
	seconds0, joules0 := tuning.Exactly(1), tuning.Exactly(1)
	if f.Settings != nil {
		seconds0, joules0 = s.times(f.Settings)
	}
	sum := func(used, rest, effect, forecastEffect tuning.Estimate) *tuning.Estimate {
		rest = times(rest, tuning.Estimate{Value: 1 / forecastEffect.Value, Low: 1 / forecastEffect.High, High: 1 / forecastEffect.Low})
		out := plus(plus(times(rest.Times(share), effect), rest.Times(1-share)), used)
		if !out.IsFinite() {
			return nil
		}
		return &out
	}
	out := course{seconds: sum(tuning.Exactly(s.Elapsed.Seconds()+restarts*s.price().Seconds()), *f.Seconds, seconds, seconds0)}
	if f.Joules != nil && f.Spent != nil && f.Seconds.Value > 0 {
		power := f.Joules.Value / f.Seconds.Value // a restart is taken to use power as the job does
		used := plus(*f.Spent, tuning.Exactly(restarts*s.RestartCost.Seconds()*power))
		out.joules = sum(used, *f.Joules, joules, joules0)
	}
	return out
}

// times is how many times as much an epoch takes as under the owner's settings: measured in this
// job, else in others, else bounded.
func (s view) times(t tuning.Settings) (seconds, joules tuning.Estimate) {
	if t.EqualButMemory(s.Own) {
		return tuning.Exactly(1), tuning.Exactly(1)
	}
	power := math.Max(1, s.moreCores(t)) // more cores draw more power, at most in proportion
	if x, ok := s.trialOf(t); ok {
		if own, ok := tuning.Reference(s.Trials); ok && x.Seconds > 0 && own.Seconds > 0 {
			se := x.RatioError(own, tuning.EpochSD(s.Trials...))
			seconds = around(math.Log(x.Seconds/own.Seconds), se)
			if ratio := x.JoulesRatio(own); !math.IsNaN(ratio) {
				return seconds, around(ratio, se)
			}
			return seconds, tuning.Estimate{Value: seconds.Value, Low: seconds.Low, High: seconds.High * power}
		}
	}
	if e, ok := s.effectOf(t); ok {
		se := e.Error(betweenRuns)
		seconds = around(e.LogTime, se)
		wj, ws := s.Policy.Measure().Weights()
		if wj > 0 {
			return seconds, around((e.LogRatio-ws*e.LogTime)/wj, se/wj)
		}
		return seconds, tuning.Estimate{Value: seconds.Value, Low: seconds.Low, High: seconds.High * power}
	}
	slowest := math.Max(unknownSlowdown, 1/s.moreCores(t))
	return tuning.Estimate{Value: 1, Low: 0, High: slowest}, tuning.Estimate{Value: 1, Low: 0, High: slowest * power}
}

func (s view) moreCores(t tuning.Settings) float64 {
	now, own := t[tuning.Cores].Float(), s.Own[tuning.Cores].Float()
	if !(now > 0) || !(own > 0) {
		return 1
	}
	return now / own
}

func (s view) effectOf(t tuning.Settings) (tuning.Effect, bool) {
	for _, list := range [][]tuning.Effect{s.KindEffects, s.ClassEffects} {
		for _, e := range list {
			if u := s.usable(e.Settings); len(u) > 0 && e.Runs > 0 && s.target(u).EqualButMemory(t) {
				return e, true
			}
		}
	}
	return tuning.Effect{}, false
}

func around(log, se float64) tuning.Estimate {
	return tuning.Estimate{Value: math.Exp(log), Low: math.Exp(log - reach*se), High: math.Exp(log + reach*se)}
}

// Errors are taken to fall together, which gives the widest interval.
func plus(a, b tuning.Estimate) tuning.Estimate {
	return tuning.Estimate{Value: a.Value + b.Value, Low: a.Low + b.Low, High: a.High + b.High}
}

func times(a, b tuning.Estimate) tuning.Estimate {
	return tuning.Estimate{Value: a.Value * b.Value, Low: a.Low * b.Low, High: a.High * b.High}
}
