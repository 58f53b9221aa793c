package plan

import (
	"cmp"
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// considered is how many effects of other jobs are listed at most: the best ones.
const considered = 4

func (s view) explain(d tuning.Decision) tuning.Decision {
	d.Class = s.Class
	if f := s.Forecast; f != nil && !slices.ContainsFunc([]*tuning.Estimate{f.Epochs, f.Seconds, f.Joules, f.Spent, f.Final}, func(e *tuning.Estimate) bool {
		return e != nil && !e.IsFinite()
	}) {
		d.Forecast = f // all its numbers are finite
	}
	if s.Gate != tuning.ReasonNone || s.Policy.Mode == tuning.Observe || len(s.Policy.Knobs) == 0 {
		return d
	}
	target := d.Settings
	if d.Action == tuning.Hold {
		target = d.Advice
	}
	if d.Forecast.IsKnown() {
		d.Budgets = s.budgets(target, d.Action == tuning.Probe)
	}
	if s.rest().Value > 0 {
		d.Prices = s.prices(d)
	}
	d.Alternatives = s.alternatives(d)
	return d
}

type candidate struct {
	settings tuning.Settings
	from     tuning.Origin
	gain     gain
	known    bool          // gain is known
	why      tuning.Reason // why it is not taken; ReasonNone: no objection
}

func (s view) alternatives(d tuning.Decision) []tuning.Alternative {
	var out []tuning.Alternative
	_, per := s.unit()
	present, _ := s.present()
	for _, c := range s.candidates() {
		if slices.ContainsFunc(out, func(a tuning.Alternative) bool { return a.Settings.EqualButMemory(c.settings) }) {
			continue
		}
		a := tuning.Alternative{Settings: c.settings, From: c.from}
		if c.known && d.Prices != nil {
			if rest := s.restUnder(c.gain).Times(per); rest.IsFinite() {
				a.Rest = &rest
			}
			if saving := s.saves(present, c.gain).Times(per); saving.IsFinite() && c.from != tuning.OriginPresent {
				a.Saving = &saving
			}
		}
		switch {
		case d.Action == tuning.Hold && c.from == tuning.OriginPresent, d.Action != tuning.Hold && c.settings.EqualButMemory(d.Settings):
			a.Taken, a.Reason = true, d.Reason
		case c.from == tuning.OriginPresent, c.why == tuning.ReasonNone && d.Action != tuning.Hold:
			a.Reason = tuning.ReasonLessPromising
		default:
			a.Reason = cmp.Or(c.why, d.Reason) // the reason of the hold
		}
		out = append(out, a)
	}
	return out
}

func (s view) restUnder(g gain) tuning.Estimate {
	rest := s.rest()
	if _, ok := tuning.Reference(s.Trials); !ok {
		present, _ := s.present()
		g = gain{g.ratio - present.ratio, math.Hypot(g.se, present.se)}
	}
	factor := math.Exp(g.ratio)
	doubt := reach * factor * g.se * rest.Value
	return tuning.Estimate{
		Value: factor * rest.Value,
		Low:   math.Max(0, factor*rest.Value-math.Hypot(doubt, factor*(rest.Value-rest.Low))),
		High:  factor*rest.Value + math.Hypot(doubt, factor*(rest.High-rest.Value)),
	}
}

func (s view) candidates() []candidate {
	present, _ := s.present()
	out := []candidate{{settings: s.Current, from: tuning.OriginPresent, gain: present, known: true}}
	if !s.Current.Equal(s.Own) {
		out = append(out, s.weighed(candidate{settings: s.Own, from: tuning.OriginOwner, known: true}, true))
	}
	tried := slices.Clone(s.Trials)
	slices.SortStableFunc(tried, func(a, b tuning.Trial) int {
		x, _ := s.gainOf(a)
		y, _ := s.gainOf(b)
		return cmp.Compare(x.ratio, y.ratio)
	})
	for _, t := range tried {
		if t.Reference || t.Settings.Equal(s.Current) {
			continue
		}
		c := candidate{settings: t.Settings, from: tuning.OriginTried}
		c.gain, c.known = s.gainOf(t)
		switch {
		case t.Failed:
			c.why = tuning.ReasonFailed
		case s.harmed(t.Settings):
			c.why = tuning.ReasonRemembered
		case c.known && !(c.gain.ratio < -math.Max(noise, sigmas*c.gain.se)):
			c.why = tuning.ReasonNeutral
		}
		out = append(out, s.weighed(c, false))
	}
	out = append(out, s.taught(s.KindEffects, tuning.OriginKind)...)
	if s.Class != nil && s.Class.Known() {
		out = append(out, s.taught(s.ClassEffects, tuning.OriginClass)...)
	}
	if target, _ := s.promising(); target != nil && s.NextReason == tuning.ReasonNone {
		c := candidate{settings: target, from: tuning.OriginSearch}
		if s.Probes >= s.Policy.Budget.Probes {
			c.why = tuning.ReasonBudgetProbes
		}
		out = append(out, c)
	}
	return out
}

func (s view) taught(effects []tuning.Effect, from tuning.Origin) []candidate {
	var usable []tuning.Effect
	for _, e := range effects {
		if e.Settings = s.usable(e.Settings); len(e.Settings) > 0 {
			usable = append(usable, e)
		}
	}
	slices.SortStableFunc(usable, func(a, b tuning.Effect) int { return cmp.Compare(a.LogRatio, b.LogRatio) })
	var out []candidate
	for _, e := range usable[:min(len(usable), considered)] {
		c := candidate{settings: s.goal(e.Settings), from: from, gain: gainOfEffect(e), known: e.Runs > 0, why: s.objection(e)}
		if from == tuning.OriginClass && e.Runs < classRuns && c.why == tuning.ReasonNone {
			c.why = tuning.ReasonFewRuns
		}
		out = append(out, s.weighed(c, false))
	}
	return out
}

func (s view) weighed(c candidate, home bool) candidate {
	if c.why != tuning.ReasonNone || !c.known || s.Pending {
		return c
	}
	present, _ := s.present()
	saving := s.saves(present, c.gain)
	switch {
	case s.spent() != tuning.ReasonNone:
		c.why = s.spent()
	case home:
		c.why = s.repays(saving.Value, 1, tuning.ReasonWorthless)
	default:
		c.why = s.pays(saving, s.worthless())
	}
	if c.why == tuning.ReasonNone && !home {
		c.why, _ = s.overBudget(c.settings, false)
	}
	return c
}
