package plan

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"pitchpipe/controller/respond"
	"pitchpipe/controller/tuning"
)

// Decide returns what to do now, with all that was known and considered.
func Decide(state tuning.State) tuning.Decision { return Explain(state, Choose(state)) }

// Choose returns what to do now. What was considered is missing, which takes longer to
// collect than the decision; Explain adds it.
func Choose(state tuning.State) tuning.Decision { return look(state).chosen() }

// Explain adds to the decision that Choose made of a state what was known and considered.
func Explain(state tuning.State, d tuning.Decision) tuning.Decision { return look(state).explain(d) }

// How likely a setting must keep to the allowed slowdown to be stayed under, and to be gone back to.
const (
	doubtful   = 0.3
	likelyKept = 0.7
)

func look(state tuning.State) view {
	s := view{state, sync.OnceValue(func() *respond.Model { return answer(state) })}
	if s.Refused == tuning.ReasonSlower && s.kept(s.model().Predict(s.Current)) > doubtful {
		s.Refused = tuning.ReasonNone // its few epochs were, and all that is known of it does not say so
	}
	if o := s.Outcome; o != nil && o.Verdict == tuning.Regressed && len(o.Tuned) > 0 { // it is not sent there again
		s.Regressed = append(slices.Clone(s.Regressed), o.Tuned.WithoutMemory())
	}
	return s
}

// chosen is the decision as far as it may be carried out. A hold names the rules of the site
// and the stanza that it follows, where it is known where they come from.
func (s view) chosen() tuning.Decision {
	d := restrain(s, decideOn(s))
	if d.Action != tuning.Hold || s.Site.Sources == nil {
		return d
	}
	rules := tuning.Rules(d.Reason, s.Policy, s.Site)
	switch {
	case d.Reason == tuning.ReasonSiteCap && s.Pending:
		rules = []tuning.Rule{s.Site.Rule("probe_share")}
	case d.Reason == tuning.ReasonSiteCap:
		rules = []tuning.Rule{s.Site.Rule("job_restarts")}
	}
	for _, r := range rules {
		d.Evidence = append(d.Evidence, tuning.Evidence{Name: "rule", Text: r.String()})
	}
	return d
}

// decideOn takes the steps in the order of the reasons that outrank each other.
func decideOn(s view) tuning.Decision {
	// 1. Nothing may be done at all.
	if s.Gate != tuning.ReasonNone {
		return hold(s, s.Gate)
	}
	if s.Policy.Mode == tuning.Observe {
		return hold(s, tuning.ReasonObserveMode)
	}
	if len(s.Policy.Knobs) == 0 {
		return hold(s, tuning.ReasonNoKnobs)
	}
	// 2. A tuned job that costs too much, or got worse, leaves its setting.
	if d, ok := stop(s); ok {
		return d
	}
	if d, ok := rollBack(s); ok {
		return d
	}
	// 3. A job that has not started is changed for free, if its kind is known.
	if s.Pending {
		return restrainBudget(s, recall(s))
	}
	// 4. A running job is touched only where it can be, and measured first.
	if r := touchable(s); r != tuning.ReasonNone {
		if d, ok := conclude(s, r); ok {
			return d
		}
		return advise(s, r, s.outlook(r)...)
	}
	if s.Measured != tuning.ReasonNone {
		return unmeasured(s)
	}
	// 5. What came from memory is doubted before it is built upon.
	if d, ok := doubt(s); ok {
		return d
	}
	// Joules that are only computed are right on average and wrong on this job.
	computed := s.JoulesSource == tuning.Modelled && !s.Site.EnforceModel
	if s.Policy.Measure().NeedsJoules() && computed {
		return advise(s, tuning.ReasonModelled)
	}
	if own, ok := tuning.Reference(s.Trials); ok && s.Policy.Objective == tuning.Cost {
		if _, counted := own.LogRatio(own, s.Policy.Measure()); !counted {
			return hold(s, tuning.ReasonUncounted)
		}
	}
	// 6. Known settings are used, unknown ones are probed. While what is left is
	// unknown, nothing that runs is moved.
	if s.Forecast != nil && !s.Forecast.IsKnown() {
		return hold(s, cmp.Or(s.Forecast.Reason, tuning.ReasonNoTotal))
	}
	return restrainBudget(s, choose(s))
}

// Waits reports whether a hold for this reason may end by itself, such as by a shorter queue
// or a sharper forecast. The controller then decides about the job again. Other holds end only
// when the job or the site changes.
func Waits(r tuning.Reason) bool {
	switch r { //nolint:exhaustive // a closed list of the few reasons that pass with time
	case tuning.ReasonWarmingUp, tuning.ReasonProfiling, tuning.ReasonPolluted, tuning.ReasonNoSamples,
		tuning.ReasonPaused, tuning.ReasonSiteCap, tuning.ReasonFirstSeen, tuning.ReasonUnreachable,
		tuning.ReasonNoTotal, tuning.ReasonLongQueue, tuning.ReasonUnknownQueue, tuning.ReasonNearClosing,
		tuning.ReasonUncertain, tuning.ReasonOverEnergy, tuning.ReasonOverTime, tuning.ReasonLossLimit:
		return true
	}
	return false
}

// touchable says why a running job must be left alone, or ReasonNone. The time limit is the
// attempt's, so that the queue does not count against it. A reservation takes the nodes
// whether the job runs or waits.
func touchable(s view) tuning.Reason {
	b, r := s.Policy.Budget, s.Policy.Untouchable(s.Site)
	computed := s.JoulesSource == tuning.Modelled && !s.Site.EnforceModel
	switch {
	case s.Pending:
		return tuning.ReasonNone
	case r != tuning.ReasonNone:
		return r
	case b.Time > 0 && s.Elapsed >= b.Time:
		return tuning.ReasonBudgetTime
	case b.Energy > 0 && s.Joules != nil && *s.Joules >= b.Energy && !computed:
		return tuning.ReasonBudgetEnergy
	case s.LimitLeft > 0 && s.LimitLeft <= s.RestartCost+s.Site.LimitReserve:
		return tuning.ReasonNearLimit
	case s.ClosedIn > 0 && s.ClosedIn <= s.RestartCost+s.Wait+s.Site.LimitReserve:
		return tuning.ReasonNearClosing
	case s.EpochsTotal == 0 && s.EpochsDone > 0:
		return tuning.ReasonNoTotal
	}
	return tuning.ReasonNone
}

// unbudgeted is the state without its budgets of time and energy: their end stops
// tuning, and the way back to the owner's settings is the end of tuning.
func (s view) unbudgeted() view {
	s.Policy.Budget.Time, s.Policy.Budget.Energy = 0, 0
	return s
}

// conclude ends the tuning of a job whose budget of time or energy ran out under a setting
// that is being tried: that is judged first, and left where it is worse than the owner's.
func conclude(s view, r tuning.Reason) (tuning.Decision, bool) {
	if touchable(s.unbudgeted()) != tuning.ReasonNone || s.Current.Equal(s.Own) {
		return tuning.Decision{}, false
	}
	if _, measured := tuning.Reference(s.Trials); !measured || s.spent() != tuning.ReasonNone {
		return tuning.Decision{}, false
	}
	if s.Measured != tuning.ReasonNone && !s.judged(s.Current) {
		return unmeasured(s), true
	}
	if s.Refused != tuning.ReasonNone {
		return s.leave(s.Refused, nil), true
	}
	at, _ := s.present()
	if !(at.ratio > noise) {
		return tuning.Decision{}, false
	}
	saving := s.saves(at, gain{}).Value
	evidence := append([]tuning.Evidence{{Name: "log_ratio", Value: at.ratio}}, worth(s, saving, 1)...)
	if why := s.repays(saving, s.Site.Margin, r); why != tuning.ReasonNone {
		return hold(s, why, evidence...), true
	}
	return decide(s, tuning.RollBack, r, s.Own, evidence...), true
}

// rollBack returns a job whose last move got worse. What its owner would not accept is left
// as long as more remains than the restart costs, however long the queue. A setting that is
// merely worse is left where what is left of the job repays the way back.
func rollBack(s view) (tuning.Decision, bool) {
	o := s.Outcome
	if o == nil || o.Verdict != tuning.Regressed || s.Pending || s.Current.Equal(s.Own) {
		return tuning.Decision{}, false
	}
	if len(o.Tuned) > 0 && !o.Tuned.Equal(s.Current) {
		return tuning.Decision{}, false // it tells of a setting that was left
	}
	reason := cmp.Or(o.Reason, tuning.ReasonRegressed)
	evidence := []tuning.Evidence{
		{Name: "log_ratio", Value: o.LogRatio},
		{Name: "log_ratio_low", Value: o.Low},
		{Name: "log_ratio_high", Value: o.High},
		{Name: "pairs", Value: float64(o.Pairs)},
	}
	if r := touchable(s.unbudgeted()); r != tuning.ReasonNone {
		return hold(s, r, append(evidence, s.outlook(r)...)...), true
	}
	if r := s.spent(); r != tuning.ReasonNone {
		return hold(s, r, evidence...), true
	}
	if reason == tuning.ReasonQualityLost || reason == tuning.ReasonSlower {
		return s.leave(reason, evidence), true
	}
	saving := s.rest().Value * math.Expm1(max(o.LogRatio, 0))
	if r := s.repays(saving, 1, tuning.ReasonWorthless); r != tuning.ReasonNone {
		return hold(s, r, append(evidence, worth(s, saving, 1)...)...), true
	}
	return decide(s, tuning.RollBack, reason, s.Own, evidence...), true
}

// leave is the way back from a setting that the owner would not accept.
func (s view) leave(reason tuning.Reason, evidence []tuning.Evidence) tuning.Decision {
	if left := s.rest().Value; !(left > s.RestartCost.Seconds()) {
		return hold(s, tuning.ReasonTooShort, append(evidence, worth(s, left, 1)...)...)
	}
	return s.back(reason, evidence)
}

// back is the way from a setting that is left: to the best other one that is within the limits,
// by what this job measured or, at 95 %, by the model; else to the owner's.
func (s view) back(reason tuning.Reason, evidence []tuning.Evidence) tuning.Decision {
	action, best, least := tuning.RollBack, s.Own, 0.0
	consider := func(t tuning.Settings, ratio, slower float64) {
		if ratio < min(least, -noise) && s.mayReturn(t) && !s.overruns(slower) {
			action, best, least = tuning.Move, t, ratio
		}
	}
	for _, t := range s.Trials {
		if g, ok := s.gainOf(t); ok && !t.Failed && g.ratio < -sigmas*g.se && s.kept(s.model().Predict(t.Settings)) > likelyKept {
			consider(t.Settings, g.ratio, t.Seconds/s.presentSeconds())
		}
	}
	if s.harm()+2*s.wayBack() <= s.lossLimit() { // it may be wrong once more
		for _, t := range s.searched() {
			if p := s.model().Predict(t); !s.ranUnder(t) && s.surely(s.Own, t) {
				consider(s.goal(t), p.Objective.Mean, math.Exp(p.Time.Mean))
			}
		}
	}
	return decide(s, action, reason, best, evidence...)
}

// mayReturn reports whether a job may leave its present setting for this one.
func (s view) mayReturn(t tuning.Settings) bool {
	_, permitted := s.Policy.Permits(s.Own, t)
	over, _ := s.overBudget(t, false)
	return permitted && over == tuning.ReasonNone && !t.EqualButMemory(s.Current) && !s.hurt(t) && !s.Policy.Relearns(s.Own, t)
}

// surely reports whether a setting saves beside another at 95 %, within the allowed slowdown.
func (s view) surely(from, to tuning.Settings) bool {
	return !s.lawless(to) && s.model().Chances(from, to, noise).Likely >= confidence
}

// unmeasured waits for a profile. A probe that cannot be judged because others disturb it is
// left for the best setting that was measured, unless it has fewer cores and is expected to be
// better than that. What came from memory is no such probe.
func unmeasured(s view) tuning.Decision {
	const patience = 2 // disturbed epochs
	disturbed := s.Measured == tuning.ReasonPolluted && s.Toll != nil && s.Toll.Present.Disturbed >= patience
	if !disturbed || s.Probes == 0 || s.Current.Equal(s.Own) || s.judged(s.Current) || s.spent() != tuning.ReasonNone {
		return hold(s, s.Measured)
	}
	left := s.rest().Value
	if r := s.repays(left, s.Site.Margin, s.Measured); r != tuning.ReasonNone {
		return hold(s, r, worth(s, left, 1)...)
	}
	d := s.back(tuning.ReasonPolluted, []tuning.Evidence{{Name: "disturbed_epochs", Value: float64(s.Toll.Present.Disturbed)}})
	if m := s.model(); !s.lawless(s.Current) && s.moreCores(s.Current) <= 1 && s.kept(m.Predict(s.Current)) > likelyKept && m.Between(d.Settings, s.Current).Mean < 0 {
		return hold(s, s.Measured)
	}
	return d
}
