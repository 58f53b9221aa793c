package plan

import (
	"cmp"
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

const (
	// noise is the smallest log ratio that counts as a gain: choosing the best of six equal
	// settings seems to save a few percent.
	noise = 0.03

	// sigmas is how many standard errors a gain must exceed.
	sigmas = 2

	// venture is how many times the sure saving a probe must be expected to save: it may
	// fail, and it may follow the sure step.
	venture = 1.3
)

func choose(s view) tuning.Decision {
	if _, ok := tuning.Reference(s.Trials); !ok {
		switch e, reason, better := known(s); {
		case !s.Current.Equal(s.Own) && better: // its kind showed it after the job started
			return adopt(s, e, reason)
		case !s.Current.Equal(s.Own):
			return s.home()
		case len(s.Trials) > 0: // the owner's settings are measured first
			return hold(s, tuning.ReasonProfiling)
		}
	}
	if s.answered() {
		return settle(s)
	}
	// Settings known from its kind or class come before probes.
	if s.Probes == 0 || len(s.Trials) <= 1 {
		if e, reason, ok := known(s); ok {
			return adopt(s, e, reason)
		}
	}
	if s.Current.Equal(s.Own) || s.judged(s.Current) {
		if d, sure := predicted(s); sure > 0 {
			// What a move shows serves later trials too, as what a probe shows does.
			if target, expected := s.promising(); s.NextReason == tuning.ReasonNone && expected*s.epochsAfterProbe() > venture*sure*s.served() {
				if p := probe(s, target); p.Action == tuning.Probe {
					return p
				}
			}
			if s.Restarts+1 >= s.Policy.Budget.Restarts { // the last restart is reserved for the way back
				if p := probe(s, d.Settings); p.Action == tuning.Probe {
					p.Reason = d.Reason
					return p
				}
			}
			return d
		}
	}
	if s.NextReason == tuning.ReasonNone {
		if target, _ := s.promising(); target != nil {
			return probe(s, target)
		}
	}
	if s.Probes == 0 && s.Current.Equal(s.Own) { // nothing was tried
		switch {
		case remembered(s):
			return hold(s, tuning.ReasonRemembered, classEvidence(s.Class)...)
		case s.NextReason == tuning.ReasonWholeRuns:
			return hold(s, s.NextReason, append(classEvidence(s.Class), s.wholeRuns()...)...)
		case s.NextReason == tuning.ReasonNoKnobs || s.NextReason == tuning.ReasonNoQualityGuard:
			return hold(s, s.NextReason, classEvidence(s.Class)...)
		case len(s.Trials) <= 1:
			return hold(s, tuning.ReasonUnlikely, classEvidence(s.Class)...)
		}
	}
	return settle(s)
}

// answered reports whether this job has compared a recalled setting with its owner's. Its own
// numbers then outrank those of others.
func (s view) answered() bool {
	if len(s.Trials) < 2 {
		return false
	}
	if s.Probes == 1 && !s.Trials[0].Reference {
		return true // it started under a recalled setting, and its one probe was the check
	}
	e, _, ok := known(s)
	return ok && s.Probes == 0 && s.ranUnder(s.target(e.Settings))
}

func adopt(s view, e tuning.Effect, reason tuning.Reason) tuning.Decision {
	target := s.goal(e.Settings)
	evidence := append(effectEvidence(e), classEvidence(s.Class)...)
	if target.Equal(s.Current) {
		return hold(s, tuning.ReasonAlreadyBest, evidence...)
	}
	if r := s.spent(); r != tuning.ReasonNone {
		return hold(s, r, evidence...)
	}
	// A setting from other jobs is taken only if this job can still show it wrong, and return.
	if left := s.left(); left <= float64(s.epochsPerProbe()) {
		return hold(s, tuning.ReasonTooShort, append(evidence, tuning.Evidence{Name: "epochs_left", Value: left})...)
	}
	from, logTime := s.present()
	if s.overruns(math.Exp(e.LogTime - logTime)) {
		return hold(s, tuning.ReasonSlower, append(evidence, s.limit()...)...)
	}
	saving := s.saves(from, gainOfEffect(e))
	evidence = append(evidence, worthAtLeast(s, saving)...)
	if r := s.pays(saving, s.worthless()); r != tuning.ReasonNone {
		return hold(s, r, evidence...)
	}
	return decide(s, tuning.Move, reason, target, evidence...)
}

func probe(s view, target tuning.Settings) tuning.Decision {
	// A probe pays only if the epochs after it can repay two restarts and what its own
	// epochs may lose. The low end of the rest counts, and the loss counts with the margin.
	// The share of the rest that it is expected to save over the best measured setting.
	_, best := s.baseline()
	promise := s.chances(target).Saves
	saving := s.served() * s.epoch().Low * promise * math.Exp(best)
	evidence := append(classEvidence(s.Class), worth(s, saving, 2)...)
	evidence = append(evidence, tuning.Evidence{Name: "predicted_saving_share", Value: promise})
	for _, e := range s.Carried {
		if e.Between {
			evidence = append(evidence, tuning.Evidence{Name: "log_time_beside", Value: e.LogTime, Text: e.From.String()})
		}
	}
	stop := s.mayProbe(saving - s.Site.Margin*s.exploring(target))
	if stop == tuning.ReasonNone {
		if r, why := s.overBudget(target, true); r != tuning.ReasonNone {
			stop, evidence = r, append(evidence, why...)
		}
	}
	ways, risk := 2*s.wayBack(), max(s.exploring(target)/s.epoch().Value, s.exposure(target))
	if stop == tuning.ReasonNone && !(s.harm()+ways+risk <= s.lossLimit(true)) {
		stop, evidence = tuning.ReasonLossLimit, append(evidence, s.lossEvidence(true, tuning.Evidence{Name: "both_ways_epochs", Value: ways}, tuning.Evidence{Name: "trying_epochs", Value: risk})...)
	}
	if stop != tuning.ReasonNone {
		if s.Probes > 0 {
			return settle(s)
		}
		return hold(s, stop, evidence...)
	}
	reason := tuning.ReasonUnknownProbe
	switch {
	case s.Probes > 0:
		reason = tuning.ReasonProbeNext
	case s.Class != nil && s.Class.Known():
		reason = tuning.ReasonClassProbe
	}
	return decide(s, tuning.Probe, reason, target, evidence...)
}

// mayProbe returns why no probe that could save so many seconds is made. It needs two restarts.
func (s view) mayProbe(saving float64) tuning.Reason {
	switch {
	case max(s.Probes, s.SearchProbes) >= s.Policy.Budget.Probes:
		return tuning.ReasonBudgetProbes
	case s.Site.JobRestarts > 0 && s.Restarts+s.Probes+1 >= s.Site.JobRestarts:
		return tuning.ReasonSiteCap // a probe is a restart too, and one is reserved for the way back
	case s.Restarts >= s.Policy.Budget.Restarts:
		return tuning.ReasonBudgetRestarts // a probe that loses could not be undone
	case s.EpochsTotal > 0 && float64(s.ProbeEpochs+s.epochsPerProbe()) > s.Site.ProbeShare*float64(s.EpochsTotal):
		return tuning.ReasonTooShort
	}
	return s.repays(saving, 2*s.Site.Margin, s.worthless())
}

func settle(s view) tuning.Decision {
	evidence := []tuning.Evidence{
		{Name: "best_log_ratio", Value: s.BestGain},
		{Name: "best_standard_error", Value: s.BestError},
		{Name: "settings_tried", Value: float64(len(s.Trials))},
	}
	best, gained := s.winner()
	target, reason, stays, action := s.Own, tuning.ReasonProbesNoGain, tuning.ReasonProbesNoGain, tuning.RollBack
	if gained {
		target, reason, stays, action = best, tuning.ReasonProbeWon, tuning.ReasonAlreadyBest, tuning.Move
		evidence = append(evidence, tuning.Evidence{Name: "best", Text: best.String()})
	}
	if target.Equal(s.Current) {
		return hold(s, stays, evidence...)
	}
	if r := s.spent(); r != tuning.ReasonNone {
		return hold(s, r, evidence...)
	}
	if s.Refused != tuning.ReasonNone {
		return s.leave(s.Refused, nil) // however much it saves
	}
	if gained && s.overruns(s.Best.Seconds/s.presentSeconds()) {
		return hold(s, tuning.ReasonSlower, append(evidence, s.limit()...)...)
	}
	from, _ := s.present()
	var why tuning.Reason
	if gained {
		saving := s.saves(from, gain{s.BestGain, s.BestError})
		evidence, why = append(evidence, worthAtLeast(s, saving)...), s.pays(saving, tuning.ReasonWorthless)
	} else { // no margin on the way back: a losing probe would lose to the end
		saving := s.saves(from, gain{}).Value
		evidence, why = append(evidence, worth(s, saving, 1)...), s.repays(saving, 1, tuning.ReasonWorthless)
	}
	if why != tuning.ReasonNone {
		return hold(s, why, evidence...)
	}
	return decide(s, action, reason, target, evidence...)
}

// winner is the best trial, if its gain is beyond the noise. A memory limit that killed the job is
// never used again.
func (s view) winner() (tuning.Settings, bool) {
	if s.Best == nil || !(s.BestGain < -math.Max(noise, sigmas*s.BestError)) {
		return nil, false
	}
	target := s.target(s.Best.Settings)
	if m, ok := target[tuning.Memory]; ok && s.ranOut(m) {
		target = target.With(tuning.Memory, s.Own[tuning.Memory])
	}
	return target, !s.harmed(target)
}

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
		case d.Action == tuning.RollBack && c.from == tuning.OriginPresent:
			a.Reason = d.Reason // it may promise more and be slower than its owner allows
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
