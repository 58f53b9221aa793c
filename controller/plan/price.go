package plan

import (
	"math"
	"time"

	"pitchpipe/controller/tuning"
)

// What a change saves of the rest of the job is held against the price of its restarts. Both
// are counted in seconds of the rest as Forecast tells it; unit says how much of the objective
// one is worth.

const (
	reach   = 1.2816 // standard errors that the ends of an 80 % interval are away
	dearest = 2      // log ratio up to which a single probe counts for what the next may lose
)

// gain is the log ratio of the objective to that of the owner's settings, and its standard
// error.
type gain struct{ ratio, se float64 }

// rest is how long what is left would take; 0 where unknown, so that nothing is worth it.
func (s view) rest() tuning.Estimate {
	switch {
	case s.Forecast == nil:
		return tuning.Exactly(s.Remaining())
	case s.Forecast.IsKnown():
		return *s.Forecast.Seconds
	}
	return tuning.Estimate{}
}

// epoch is how long one of the rest takes.
func (s view) epoch() tuning.Estimate {
	n := s.EpochsTotal - s.EpochsDone
	switch {
	case s.Forecast == nil:
		return tuning.Exactly(s.EpochSeconds)
	case n <= 0:
		return tuning.Estimate{}
	}
	return s.rest().Times(1 / float64(n))
}

// price is what a restart takes from the job now, the wait in the queue included.
func (s view) price() time.Duration { return s.RestartCost + s.Wait }

// factors is in how many factors of the objective, such as of joules times seconds, a restart
// is paid.
func (s view) factors() float64 { return s.Policy.Measure().Degree() }

// repays says why a saving of so many seconds is not worth so many prices of a restart, or
// ReasonNone: ReasonLongQueue where it would be without the queue, ReasonUnknownQueue where
// its length is unknown, else the given reason. A saving that is no number never is worth it.
func (s view) repays(saving, prices float64, otherwise tuning.Reason) tuning.Reason {
	prices *= s.factors()
	switch {
	case s.Crowded != "" && saving > prices*s.RestartCost.Seconds():
		return tuning.ReasonUnknownQueue
	case saving > prices*s.price().Seconds():
		return tuning.ReasonNone
	case saving > prices*s.RestartCost.Seconds():
		return tuning.ReasonLongQueue
	}
	return otherwise
}

// pays says why a move away from the owner's settings is not worth its restart, or ReasonNone:
// ReasonUncertain where the value of its saving is, and the low end is not.
func (s view) pays(saving tuning.Estimate, otherwise tuning.Reason) tuning.Reason {
	why := s.repays(min(saving.Low, saving.Value), s.Site.Margin, otherwise)
	if why == tuning.ReasonNone && !(saving.Low > 0) {
		return tuning.ReasonUncertain // a restart that costs nothing is not worth nothing
	}
	if why != tuning.ReasonNone && s.repays(saving.Value, s.Site.Margin, otherwise) == tuning.ReasonNone {
		return tuning.ReasonUncertain
	}
	return why
}

// worthless tells a job that is too short for any setting from one for which this one is too
// little.
func (s view) worthless() tuning.Reason {
	if s.rest().Value*optimism <= s.Site.Margin*s.factors()*s.RestartCost.Seconds() {
		return tuning.ReasonTooShort
	}
	return tuning.ReasonWorthless
}

// saves is what the rest of the job saves by going from one setting to another.
func (s view) saves(from, to gain) tuning.Estimate {
	if _, ok := tuning.Reference(s.Trials); !ok {
		// What is left is counted under the present setting, not under the owner's.
		from, to = gain{}, gain{to.ratio - from.ratio, math.Hypot(to.se, from.se)}
	}
	rest := s.rest()
	before, after := math.Exp(from.ratio), math.Exp(to.ratio)
	share := before - after
	value := rest.Value * share
	doubt := reach * rest.Value * math.Hypot(before*from.se, after*to.se)
	less, more := rest.Value-rest.Low, rest.High-rest.Value
	if share < 0 {
		less, more = more, less
	}
	return tuning.Estimate{
		Value: value, Low: value - math.Hypot(doubt, share*less), High: value + math.Hypot(doubt, share*more),
	}
}

// epochsAfterProbe are those that would profit from what a probe shows.
func (s view) epochsAfterProbe() float64 {
	return max(0, float64(s.EpochsTotal-s.EpochsDone-s.epochsPerProbe()))
}

// exploring is what the epochs of a probe are expected to lose, in seconds, also by what those
// of the probes so far lost.
func (s view) exploring(target tuning.Settings) float64 {
	loss, n := s.loses(target), 1.0
	for _, t := range s.Trials {
		if g, ok := s.gainOf(t); ok && !t.Reference {
			loss, n = loss+math.Expm1(max(min(g.ratio, dearest), 0)), n+1
		}
	}
	return loss / n * float64(s.epochsPerProbe()) * s.epoch().Value
}

// presentSeconds is the length of an epoch now.
func (s view) presentSeconds() float64 {
	if t, ok := s.trialOf(s.Current); ok && t.Seconds > 0 {
		return t.Seconds
	}
	return s.EpochSeconds
}

// overruns reports whether a setting that is slower than the present one may carry the job
// past its time limit. The next attempt is given what is left of that now at least.
func (s view) overruns(slower float64) bool {
	if s.LimitLeft <= 0 || slower <= 1 {
		return false
	}
	if rest := s.rest(); rest.Value > 0 {
		slower *= max(rest.High/rest.Value, 1)
	}
	return float64(s.EpochsTotal-s.EpochsDone)*s.presentSeconds()*slower > s.LimitLeft.Seconds()
}

func (s view) limit() []tuning.Evidence {
	return []tuning.Evidence{
		{Name: "remaining_seconds", Value: s.rest().Value},
		{Name: "limit_left_seconds", Value: s.LimitLeft.Seconds()},
	}
}

// unit is what the objective is counted in, and how much of it a second of the rest is; a
// restart is priced as if the job ran meanwhile. What has no unit of its own is counted in
// epochs under the owner's settings.
func (s view) unit() (name string, perSecond float64) {
	switch f := s.Forecast; s.Policy.Objective {
	case tuning.Energy:
		if f.IsKnown() && f.Joules != nil && f.Seconds.Value > 0 {
			return "joules", f.Joules.Value / f.Seconds.Value
		}
	case tuning.Time, "":
		return "seconds", 1
	case tuning.Cost:
		t, joules := s.tariff(), 0.0
		if t.KWh > 0 {
			joules = f.Joules.Value / f.Seconds.Value
		}
		return "cost", t.Price(1, joules, s.Own)
	case tuning.EDP, tuning.Blend:
	}
	if one := s.epoch().Value; one > 0 {
		return "epochs", 1 / one
	}
	return "seconds", 1
}

// tariff is that of this job: energy is free in it where its joules are not measured.
func (s view) tariff() tuning.Tariff {
	t := s.Policy.Measure().Tariff
	if f := s.Forecast; !f.IsKnown() || f.Joules == nil || !(f.Seconds.Value > 0) || !t.Charges(f.JoulesSource) {
		return t.WithoutEnergy()
	}
	return t
}

// prices are those of a change now; before a job's start it costs nothing.
func (s view) prices(d tuning.Decision) *tuning.Prices {
	name, per := s.unit()
	if name == "cost" {
		name = s.tariff().Unit
	}
	if s.Pending {
		return &tuning.Prices{Unit: name}
	}
	out := &tuning.Prices{
		Unit: name, Restart: s.factors() * s.RestartCost.Seconds() * per, Queue: s.factors() * s.Wait.Seconds() * per,
		Margin: s.Site.Margin,
	}
	if d.Action == tuning.Probe {
		out.Explore = s.exploring(d.Settings) * per
	}
	for _, v := range []float64{out.Restart, out.Queue, out.Explore, out.Margin} {
		if !tuning.Exactly(v).IsFinite() {
			return nil
		}
	}
	return out
}

// worth is the evidence of the comparison of a saving with its restarts.
func worth(s view, saving float64, restarts int) []tuning.Evidence {
	unit, per := s.unit()
	paid := float64(restarts) * s.factors() * per
	out := []tuning.Evidence{
		{Name: "remaining_seconds", Value: s.rest().Value},
		{Name: "predicted_saving_" + unit, Value: saving * per},
		{Name: "restart_cost_" + unit, Value: paid * s.RestartCost.Seconds()},
	}
	if unit == "cost" {
		out[1].Text, out[2].Text = s.tariff().Unit, s.tariff().Unit
		if s.tariff() != s.Policy.Measure().Tariff {
			out = append(out, tuning.Evidence{Name: "cost_without", Text: "energy"})
		}
	}
	if s.Wait > 0 {
		out = append(out, tuning.Evidence{Name: "queue_wait_seconds", Value: float64(restarts) * s.Wait.Seconds()})
	}
	if s.Crowded != "" {
		out = append(out, tuning.Evidence{Name: "queue", Text: s.Crowded})
	}
	return append(out, tuning.Evidence{Name: "margin", Value: s.Site.Margin})
}

// worthAtLeast is worth with the end of the saving that decides.
func worthAtLeast(s view, saving tuning.Estimate) []tuning.Evidence {
	unit, per := s.unit()
	out := worth(s, saving.Value, 1)
	return append(out, tuning.Evidence{Name: "saving_at_least_" + unit, Value: saving.Low * per, Text: out[1].Text})
}

// outlook is the evidence of what stands between a job and a restart.
func (s view) outlook(r tuning.Reason) []tuning.Evidence {
	if r != tuning.ReasonNearClosing {
		return nil
	}
	return []tuning.Evidence{
		{Name: "closed_in_seconds", Value: s.ClosedIn.Seconds()},
		{Name: "closed_by", Text: s.ClosedBy},
		{Name: "restart_cost_seconds", Value: s.RestartCost.Seconds()},
		{Name: "queue_wait_seconds", Value: s.Wait.Seconds()},
		{Name: "reserve_seconds", Value: s.Site.LimitReserve.Seconds()},
	}
}

// unknownSlowdown is how many times as long an epoch under an unknown setting
// may take; fewer cores may take as many times as long as there are fewer of them.
const unknownSlowdown = 2

// course is a way on: what the job would use in all, over all its attempts.
type course struct{ seconds, joules *tuning.Estimate }

// restrainBudget holds a change that may overrun a budget which the owner's settings keep.
// Probes of a running job are looked at before they are chosen.
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
		left := s.leave(s.Refused, evidence)
		if left.Action == tuning.Move { // to what may overrun it
			left.Action, left.Settings = tuning.RollBack, s.Own
		}
		return left
	}
	if _, measured := tuning.Reference(s.Trials); measured && !s.Pending && !s.Current.Equal(s.Own) {
		// It has left its owner's settings, and those keep the budget.
		from, _ := s.present()
		if s.repays(s.saves(from, gain{}).Value, 1, r) == tuning.ReasonNone {
			return decide(s, tuning.RollBack, r, s.Own, evidence...)
		}
	}
	return hold(s, r, evidence...)
}

// overBudget says which budget, kept by the owner's settings, a change may overrun, or
// ReasonNone.
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

// budgets are those of the job against what it will use; target empty: no change.
func (s view) budgets(target tuning.Settings, probe bool) []tuning.BudgetOutlook {
	own, change := s.under(s.Own, false), course{}
	if len(target) > 0 {
		change = s.under(target, probe)
	}
	var out []tuning.BudgetOutlook
	add := func(of string, limit float64, own, change *tuning.Estimate, unenforced tuning.Reason) {
		overruns := own != nil && own.High > limit
		out = append(out, tuning.BudgetOutlook{Of: of, Limit: limit, Own: own, Change: change, Overruns: overruns, Unenforced: unenforced})
	}
	if limit := s.Policy.Budget.Energy; limit > 0 {
		why := tuning.ReasonNone
		switch {
		case own.joules == nil:
			why = tuning.ReasonNoSamples
		case s.Forecast.JoulesSource == tuning.Modelled && !s.Site.EnforceModel:
			why = tuning.ReasonModelled
		}
		add("energy", float64(limit), own.joules, change.joules, why)
	}
	if limit := s.Policy.Budget.Time; limit > 0 {
		why := tuning.ReasonNone
		if own.seconds == nil {
			why = tuning.ReasonProfiling
		}
		add("time", limit.Seconds(), own.seconds, change.seconds, why)
	}
	return out
}

// under is what was used, the restarts, and the rest under a setting; of a probe the rest
// through it and back under the owner's settings. A number is nil where it is not known, or
// not finite.
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
	// The forecast is of the owner's settings, or of others whose effect is taken out.
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
		power := f.Joules.Value / f.Seconds.Value // a restart uses joules as if the job ran meanwhile
		used := plus(*f.Spent, tuning.Exactly(restarts*s.RestartCost.Seconds()*power))
		out.joules = sum(used, *f.Joules, joules, joules0)
	}
	return out
}

// times is how many times the seconds and the joules of an epoch under its owner's settings
// one under these takes: as this job measured it, else as others did, else as it may be.
func (s view) times(t tuning.Settings) (seconds, joules tuning.Estimate) {
	if t.EqualButMemory(s.Own) {
		return tuning.Exactly(1), tuning.Exactly(1)
	}
	power := math.Max(1, s.moreCores(t)) // more cores draw more power, and no more than in proportion
	if x, ok := s.trialOf(t); ok {
		if own, ok := tuning.Reference(s.Trials); ok && x.Seconds > 0 && own.Seconds > 0 {
			se := s.trialError(x, own) / s.factors()
			seconds = around(math.Log(x.Seconds/own.Seconds), se)
			if x.Joules != nil && own.Joules != nil && x.Source == own.Source && *x.Joules > 0 && *own.Joules > 0 {
				return seconds, around(math.Log(float64(*x.Joules / *own.Joules)), se)
			}
			return seconds, tuning.Estimate{Value: seconds.Value, Low: seconds.Low, High: seconds.High * power}
		}
	}
	if e, ok := s.effectOf(t); ok {
		se := standardError(e)
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

// moreCores is how many times as many cores a setting has as the owner's; 1: unknown.
func (s view) moreCores(t tuning.Settings) float64 {
	now, own := t[tuning.Cores].Float(), s.Own[tuning.Cores].Float()
	if !(now > 0) || !(own > 0) {
		return 1
	}
	return now / own
}

// effectOf is what others showed of a setting.
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

// around is a ratio of which the logarithm has this standard error.
func around(log, se float64) tuning.Estimate {
	return tuning.Estimate{Value: math.Exp(log), Low: math.Exp(log - reach*se), High: math.Exp(log + reach*se)}
}

// plus of two estimates whose errors are taken to fall together: no interval of a sum is wider.
func plus(a, b tuning.Estimate) tuning.Estimate {
	return tuning.Estimate{Value: a.Value + b.Value, Low: a.Low + b.Low, High: a.High + b.High}
}

// times of two estimates whose errors are taken to fall together: no interval of two
// factors is wider.
func times(a, b tuning.Estimate) tuning.Estimate {
	return tuning.Estimate{Value: a.Value * b.Value, Low: a.Low * b.Low, High: a.High * b.High}
}
