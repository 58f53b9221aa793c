package plan

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"pitchpipe/controller/adapt"
	"pitchpipe/controller/respond"
	"pitchpipe/controller/tuning"
)

// Decide returns what to do now, with all that was known and considered.
func Decide(state tuning.State) tuning.Decision { return Explain(state, Choose(state)) }

// Choose returns what to do now. Explain adds what was considered, which takes longer.
func Choose(state tuning.State) tuning.Decision {
	if state.Adaptation != nil {
		return adapt.Decide(state)
	}
	return look(state).chosen()
}

// Explain adds to the decision that Choose made of a state what was known and considered.
func Explain(state tuning.State, d tuning.Decision) tuning.Decision {
	if state.Adaptation != nil {
		return d
	}
	return look(state).explain(d)
}

// How likely a setting must keep to the allowed slowdown, to stay under it and to go back to it.
const (
	doubtful   = 0.3
	likelyKept = 0.7
)

func look(state tuning.State) view {
	s := view{state, sync.OnceValue(func() *respond.Model { return answer(state) })}
	if s.Refused == tuning.ReasonSlower && s.kept(s.model().Predict(s.Current)) > doubtful {
		s.Refused = tuning.ReasonNone // few epochs say so, and the model does not
	}
	if o := s.Outcome; o != nil && o.Verdict == tuning.Regressed && len(o.Tuned) > 0 { // it never goes there again
		s.Regressed = append(slices.Clone(s.Regressed), o.Tuned.WithoutMemory())
	}
	return s
}

// A hold names the rules that it follows, if their sources are known.
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

func decideOn(s view) tuning.Decision {
	if len(s.Allotted) > 0 {
		return resize(s)
	}
	// 1. Nothing may be done at all.
	switch {
	case s.Gate != tuning.ReasonNone:
		return hold(s, s.Gate)
	case s.Policy.Mode == tuning.Observe:
		return hold(s, tuning.ReasonObserveMode)
	case s.Policy.Mode == tuning.Apply && s.Observed != "":
		return advise(s, tuning.ReasonUnsupported, tuning.Evidence{Name: "observed", Text: s.Observed})
	case len(s.Policy.Knobs) == 0, s.Pending && s.stuck() != tuning.ReasonNone:
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
	// 4. A running job is measured first, and changed only if that is possible.
	if r := touchable(s); r != tuning.ReasonNone {
		if d, ok := conclude(s, r); ok {
			return d
		}
		if r == tuning.ReasonNoCheckpoint || r == tuning.ReasonNoRequeue || r == tuning.ReasonNearLimit {
			r = cmp.Or(s.stuck(), r)
		}
		return advise(s, r, s.outlook(r)...)
	}
	if s.Measured != tuning.ReasonNone {
		return unmeasured(s)
	}
	// 5. A recalled setting is checked before more is based on it.
	if d, ok := doubt(s); ok {
		return d
	}
	// Modelled joules are right on average and wrong for one job.
	computed := tuning.IsModelled(s.JoulesSource) && !s.Site.EnforceModel
	if s.Policy.Measure().NeedsJoules() && computed {
		return advise(s, tuning.ReasonModelled)
	}
	if own, ok := tuning.Reference(s.Trials); ok && s.Policy.Measure().Priced() {
		if _, counted := own.LogRatio(own, s.Policy.Measure()); !counted {
			return hold(s, tuning.ReasonUncounted)
		}
	}
	// 6. Known settings are used, unknown ones are probed. While the rest is unknown, no
	// running job is moved.
	if s.Forecast != nil && !s.Forecast.IsKnown() {
		return hold(s, cmp.Or(s.Forecast.Reason, tuning.ReasonNoTotal))
	}
	return restrainBudget(s, choose(s))
}

// Waits reports whether a hold for this reason may end by itself, so that the job is decided again.
func Waits(r tuning.Reason) bool {
	switch r { //nolint:exhaustive // a closed list of the few reasons that pass with time
	case tuning.ReasonWarmingUp, tuning.ReasonProfiling, tuning.ReasonPolluted, tuning.ReasonNoSamples,
		tuning.ReasonPaused, tuning.ReasonSiteCap, tuning.ReasonFirstSeen, tuning.ReasonUnreachable,
		tuning.ReasonNoTotal, tuning.ReasonLongQueue, tuning.ReasonUnknownQueue, tuning.ReasonNearClosing,
		tuning.ReasonUncertain, tuning.ReasonOverEnergy, tuning.ReasonOverTime, tuning.ReasonLossLimit, tuning.ReasonFatalSignal:
		return true
	}
	return false
}

// Revisable reports whether a hold for this reason rests on a forecast by the first epochs alone, which
// may be unlike the others.
func Revisable(r tuning.Reason) bool {
	return r == tuning.ReasonTooShort || r == tuning.ReasonWorthless || r == tuning.ReasonUnlikely
}

// touchable returns why a running job must be left alone. The time limit is the attempt's, so the
// queue does not count; a reservation takes the nodes whether the job runs or waits.
func touchable(s view) tuning.Reason {
	b, r := s.Policy.Budget, s.Policy.Untouchable(s.Site)
	computed := tuning.IsModelled(s.JoulesSource) && !s.Site.EnforceModel
	switch {
	case s.Pending:
		return tuning.ReasonNone
	case s.Policy.Mode == tuning.Apply && s.NoRequeue:
		return tuning.ReasonNoRequeue
	case r != tuning.ReasonNone:
		return r
	case s.Fatal:
		return tuning.ReasonFatalSignal
	case s.RestartsEnd:
		return tuning.ReasonRestartsEnd
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

// stuck is why no knob of a job under its owner's settings could change, whatever else held it. Memory
// changes before a start.
func (s view) stuck() tuning.Reason {
	_, memory := s.Policy.Knob(tuning.Memory)
	switch r := s.NextReason; {
	case !s.Current.Equal(s.Own), s.Pending && (memory || r != tuning.ReasonNoKnobs):
	case r == tuning.ReasonNoKnobs, r == tuning.ReasonNoQualityGuard, r == tuning.ReasonWholeRuns:
		return r
	}
	return tuning.ReasonNone
}

// A budget that is used up ends tuning, and the way back is part of that end.
func (s view) unbudgeted() view {
	s.Policy.Budget.Time, s.Policy.Budget.Energy = 0, 0
	return s
}

// conclude ends tuning when a budget is used up during a probe, whose setting is judged first.
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

// rollBack returns a job whose last move made it worse, if the rest repays the way back. A setting
// that its owner would not accept is left however long the queue.
func rollBack(s view) (tuning.Decision, bool) {
	o := s.Outcome
	if o == nil || o.Verdict != tuning.Regressed || s.Pending || s.Current.Equal(s.Own) {
		return tuning.Decision{}, false
	}
	if len(o.Tuned) > 0 && !o.Tuned.Equal(s.Current) {
		return tuning.Decision{}, false // the outcome is of a setting that was left
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

func (s view) leave(reason tuning.Reason, evidence []tuning.Evidence) tuning.Decision {
	if left := s.rest().Value; !(left > s.RestartCost.Seconds()) {
		return hold(s, tuning.ReasonTooShort, append(evidence, worth(s, left, 1)...)...)
	}
	if _, logTime := s.present(); reason == tuning.ReasonSlower {
		evidence = append(evidence, tuning.Evidence{Name: "log_time", Value: logTime})
	}
	return s.back(reason, evidence)
}

// back leaves the present setting for the best other one within the limits, as measured in this job
// or predicted at 95 %, else for the owner's.
func (s view) back(reason tuning.Reason, evidence []tuning.Evidence) tuning.Decision {
	action, best, least := tuning.RollBack, s.Own, 0.0
	if reason == tuning.ReasonSlower {
		evidence = append(evidence, tuning.Evidence{Name: "max_slowdown", Value: s.Policy.MaxSlowdown})
	}
	consider := func(t tuning.Settings, ratio, slower float64) {
		_, permitted := s.Policy.Permits(s.Own, t)
		over, _ := s.overBudget(t, false)
		if ratio < min(least, -noise) && permitted && over == tuning.ReasonNone && !t.EqualButMemory(s.Current) && !s.harmed(t) &&
			!s.Policy.Relearns(s.Own, t) && !s.overruns(slower) {
			action, best, least = tuning.Move, t, ratio
		}
	}
	for _, t := range s.Trials {
		if g, ok := s.gainOf(t); ok && !t.Failed && g.ratio < -sigmas*g.se && s.kept(s.model().Predict(t.Settings)) > likelyKept {
			consider(t.Settings, g.ratio, t.Seconds/s.presentSeconds())
		}
	}
	if _, logTime := s.present(); s.harm()+2*s.wayBack() <= s.lossLimit(false) { // one more mistake is affordable
		for _, t := range s.searched() {
			if p := s.model().Predict(t); !s.ranUnder(t) && s.surely(s.Own, t) {
				consider(s.goal(t), p.Objective.Mean, math.Exp(p.Time.Mean-logTime))
			}
		}
	}
	return decide(s, action, reason, best, evidence...)
}

func (s view) surely(from, to tuning.Settings) bool {
	return !s.lawless(to) && s.model().Chances(from, to, noise).Likely >= confidence
}

// unmeasured waits for a profile. A probe that cannot be judged because other work disturbs it is
// left, unless it has fewer cores and is expected to be better.
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
