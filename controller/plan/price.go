package plan

import (
	"cmp"
	"math"
	"time"

	"pitchpipe/controller/tuning"
)

// What a change saves of the rest of the job is compared with the price of its restarts. Both
// are in seconds of the forecast rest; unit says how much of the objective a second is worth.

const (
	reach   = 1.2816 // standard errors from the mean to the ends of an 80 % interval
	dearest = 2      // largest log ratio of one probe that counts for the next
)

// gain is the log ratio of the objective to that under the owner's settings, with its standard error.
type gain struct{ ratio, se float64 }

// left is how many epochs the job is expected to run. A trial may end at its next rung. What a probe of it shows serves
// the trial that follows, so that the saving of a probe counts all its epochs.
func (s view) left() float64 {
	all := float64(s.EpochsTotal - s.EpochsDone)
	return min(cmp.Or(s.EpochsLikely, all), all)
}

// 0: unknown, so that nothing is worth its price.
func (s view) rest() (out tuning.Estimate) {
	if s.Forecast == nil {
		out = tuning.Exactly(s.Remaining())
	} else if s.Forecast.IsKnown() {
		out = *s.Forecast.Seconds
	}
	if s.EpochsLikely > 0 && s.EpochsTotal > s.EpochsDone {
		out = out.Times(s.left() / float64(s.EpochsTotal-s.EpochsDone))
	}
	return out
}

func (s view) epoch() tuning.Estimate {
	switch {
	case s.Forecast == nil:
		return tuning.Exactly(s.EpochSeconds)
	case s.left() <= 0:
		return tuning.Estimate{}
	}
	return s.rest().Times(1 / s.left())
}

// price includes the wait in the queue.
func (s view) price() time.Duration { return s.RestartCost + s.Wait }

// factors is the number of factors of the objective that a restart raises.
func (s view) factors() float64 { return s.Policy.Measure().Degree() }

// paid is factors for a restart from here: while the job saves and waits it uses the joules
// and core-hours of its present settings.
func (s view) paid() float64 {
	if m := s.Policy.Measure(); m.Priced() || m.Objective == tuning.Energy {
		now, logTime := s.present()
		return s.factors() * min(math.Exp(now.ratio-logTime), 1)
	}
	return s.factors()
}

// repays returns why a saving of so many seconds is not worth so many restarts. A saving that is
// not a number is never worth it.
func (s view) repays(saving, prices float64, otherwise tuning.Reason) tuning.Reason {
	prices *= s.paid()
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

// pays returns why a move away from the owner's settings is not worth its restart.
func (s view) pays(saving tuning.Estimate, otherwise tuning.Reason) tuning.Reason {
	why := s.repays(min(saving.Low, saving.Value), s.Site.Margin, otherwise)
	if why == tuning.ReasonNone && !(saving.Low > 0) {
		return tuning.ReasonUncertain // even a free restart needs a saving
	}
	if why != tuning.ReasonNone && s.repays(saving.Value, s.Site.Margin, otherwise) == tuning.ReasonNone {
		return tuning.ReasonUncertain
	}
	return why
}

// worthless is the reason of a saving that is too small: no setting saves enough, or this one does
// not.
func (s view) worthless() tuning.Reason {
	if s.rest().Value*optimism <= s.Site.Margin*s.paid()*s.RestartCost.Seconds() {
		return tuning.ReasonTooShort
	}
	return tuning.ReasonWorthless
}

func (s view) saves(from, to gain) tuning.Estimate {
	if _, ok := tuning.Reference(s.Trials); !ok {
		// The rest is counted under the present setting, not under the owner's.
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

func (s view) epochsAfterProbe() float64 {
	if s.left() < float64(s.epochsPerProbe()) { // it would hardly see the end of the probe
		return 0
	}
	return max(0, float64(s.EpochsTotal-s.EpochsDone-s.epochsPerProbe()))
}

// following is about how many epochs those trials of its search run that are still to begin.
func (s view) following() float64 {
	if s.Policy.TrialOf == nil {
		return 0
	}
	return float64(s.Policy.TrialOf.Share.Next) * s.Policy.Likely(0, s.EpochsTotal)
}

// served is how many epochs gain from what a probe shows, including those of later trials; 0: the probe would not finish.
func (s view) served() float64 {
	after := s.epochsAfterProbe()
	if after > 0 {
		after += s.following()
	}
	return after
}

// exploring is what the epochs of a probe are expected to lose, judged by the probes so far too.
func (s view) exploring(target tuning.Settings) float64 {
	loss, n := s.loses(target), 1.0
	for _, t := range s.Trials {
		if g, ok := s.gainOf(t); ok && !t.Reference {
			loss, n = loss+math.Expm1(max(min(g.ratio, dearest), 0)), n+1
		}
	}
	return loss / n * float64(s.epochsPerProbe()) * s.epoch().Value
}

func (s view) presentSeconds() float64 {
	if t, ok := s.trialOf(s.Current); ok && t.Seconds > 0 {
		return t.Seconds
	}
	return s.EpochSeconds
}

// The next attempt has at least what is left of the limit now.
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

// unit is the unit of the objective, and how much of it a second of the rest costs. An objective
// without a unit is counted in epochs under the owner's settings.
func (s view) unit() (name string, perSecond float64) {
	switch f := s.Forecast; s.Policy.Measure().Objective {
	case tuning.Energy:
		if f.IsKnown() && f.Joules != nil && f.Seconds.Value > 0 {
			return "joules", f.Joules.Value / f.Seconds.Value
		}
	case tuning.Time, "":
		return "seconds", 1
	case tuning.Cost, tuning.SearchTime:
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

// Energy is free if its joules are not measured.
func (s view) tariff() tuning.Tariff {
	t := s.Policy.Measure().Tariff
	if f := s.Forecast; !f.IsKnown() || f.Joules == nil || !(f.Seconds.Value > 0) || !t.Charges(f.JoulesSource) {
		return t.WithoutEnergy()
	}
	return t
}

// A change before the start costs nothing.
func (s view) prices(d tuning.Decision) *tuning.Prices {
	name, per := s.unit()
	if name == "cost" {
		name = s.tariff().Unit
	}
	if s.Pending {
		return &tuning.Prices{Unit: name}
	}
	out := &tuning.Prices{
		Unit: name, Restart: s.paid() * s.RestartCost.Seconds() * per, Queue: s.paid() * s.Wait.Seconds() * per,
		Margin: s.Site.Margin,
	}
	if d.Action == tuning.Probe {
		out.Explore = s.exploring(d.Settings) * per
	}
	for _, v := range []float64{out.Restart, out.Queue, out.Explore, out.Margin} {
		if !tuning.Finite(v) {
			return nil
		}
	}
	return out
}

func worth(s view, saving float64, restarts int) []tuning.Evidence {
	unit, per := s.unit()
	paid := float64(restarts) * s.paid() * per
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

func worthAtLeast(s view, saving tuning.Estimate) []tuning.Evidence {
	unit, per := s.unit()
	out := worth(s, saving.Value, 1)
	return append(out, tuning.Evidence{Name: "saving_at_least_" + unit, Value: saving.Low * per, Text: out[1].Text})
}

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
