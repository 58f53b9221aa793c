package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/respond"
	"pitchpipe/controller/tuning"
)

// Memory is never set below a multiple of the largest peak seen, since the next input may be
// larger. With few runs the reserve is wider.
const (
	memoryReserve    = 1.5
	memoryReserveFew = 3
	memoryFewRuns    = 3
)

// recall changes a job before its start, at no cost, to what jobs of its kind showed.
func recall(s view) tuning.Decision {
	target := s.Own.Clone()
	reason := tuning.ReasonFirstSeen
	var evidence []tuning.Evidence
	if d, ok := tryReturn(s); ok {
		return d
	}
	if e, ok := s.bestOfKind(); ok {
		target = s.target(e.Settings)
		reason = tuning.ReasonRecalled
		evidence = append(effectEvidence(e), s.returnsEvidence()...)
		if t, why, ok := foreseen(s, target); ok {
			target, reason, evidence = t, tuning.ReasonPredictedStart, append(why, effectEvidence(e)...)
		}
	} else if t, why, ok := foreseen(s, s.Own); ok {
		target, reason, evidence = t, tuning.ReasonPredictedStart, why
	} else if len(s.KindEffects) > 0 {
		reason = tuning.ReasonAlreadyBest
		if e, ok := tuning.First(s.KindEffects, func(e tuning.Effect) bool { return s.objection(e) == tuning.ReasonSlower }); ok {
			reason, evidence = tuning.ReasonSlower, effectEvidence(e)
		}
		if remembered(s) {
			reason = tuning.ReasonRemembered
		}
	} else if s.returning() {
		if reason, evidence = s.untriable(), s.returnsEvidence(); reason == tuning.ReasonLossLimit {
			evidence = append(evidence, tuning.Evidence{Name: "restart_cost_seconds", Value: s.price().Seconds()}, tuning.Evidence{Name: "loss_limit_share", Value: lossShare})
		}
	} else if s.Policy.Budget.Returns == 0 && s.NextReason == tuning.ReasonWholeRuns {
		reason = tuning.ReasonWholeRuns
	}
	if reason == tuning.ReasonWholeRuns {
		evidence = s.wholeRuns()
	}
	if t, why, ok := explored(s, target); ok {
		target, reason, evidence = t, tuning.ReasonTryingTrial, why
	}
	if memory, ok := rightSize(s); ok {
		if target.Equal(s.Own) {
			reason = tuning.ReasonRightSized
		}
		target = target.With(tuning.Memory, memory)
		evidence = append(evidence,
			tuning.Evidence{Name: "memory_peak_bytes", Value: float64(s.PeakRSS)},
			tuning.Evidence{Name: "memory_runs_seen", Value: float64(s.PeakRuns)})
	}
	if target.Equal(s.Own) {
		return hold(s, reason, evidence...)
	}
	return decide(s, tuning.Move, reason, target, evidence...)
}

// foreseen is a setting that is predicted to be better than another. It must be sure, since a job
// without a checkpoint cannot leave it.
func foreseen(s view, from tuning.Settings) (tuning.Settings, []tuning.Evidence, bool) {
	if s.Profile == nil {
		return nil, nil, false
	}
	var best tuning.Settings
	var evidence []tuning.Evidence
	least, z := 0.0, sure
	if s.KindRuns == 0 && len(s.Carried) == 0 && s.Profile.Settings[tuning.Cores] != s.Own[tuning.Cores] {
		z *= 2 // no run of its kind had these settings to compare with
	}
	for _, target := range s.searched() {
		p := s.model().Predict(target)
		gains, slowest := s.model().Between(from, target), p.Time.Quantile(z)
		if gains.Quantile(sure) < -noise && gains.Mean < least && s.withinSlowdown(slowest) && !s.overrunsLimit(slowest) {
			best, least, evidence = target, gains.Mean, predictedEvidence(p)
		}
	}
	return best, evidence, best != nil
}

// lasts reports whether a run, of so many seconds under its owner's settings, may exceed its time limit where it is slower
// by a log ratio. 0: how long it runs is unknown.
func (s view) lasts(seconds, slower float64) bool {
	return s.LimitLeft > 0 && slower > 0 && (seconds == 0 || seconds*math.Exp(slower)*(1+doubtMargin) > s.LimitLeft.Seconds())
}

// overrunsLimit reports whether the longest earlier run, as far as one is known, would exceed the time limit where it is slower by a
// log ratio.
func (s view) overrunsLimit(slower float64) bool {
	return s.Pending && s.Returns != nil && s.Returns.Longest > 0 && s.lasts(s.Returns.Longest, slower)
}

// riskiest is the largest share by which a trial that tries a setting may cost more at 95 %.
const riskiest = 1.0

// explored is a setting under which a trial of a search begins, since it may be better than another for all
// trials that follow. No restart is paid for it. Values of a knob without a law are left to probes, which end.
func explored(s view, from tuning.Settings) (tuning.Settings, []tuning.Evidence, bool) {
	search, r := s.Policy.TrialOf, s.Returns
	unready := s.Policy.Mode != tuning.Apply || s.Site.DryRun
	if unready || search == nil || r == nil || respond.UsageOf(s.Profile, s.Own) == nil {
		return nil, nil, false
	}
	shared := s.Policy.Measure().Objective == tuning.SearchTime
	if shared {
		trial := *search
		trial.Share.Slack = trial.Share.Late
		s.Policy.TrialOf = &trial
		s = look(s.State)
	}
	after, longest := float64(search.Share.Next), max(s.KindSeconds*float64(search.Epochs), r.Longest)
	var best tuning.Settings
	var evidence []tuning.Evidence
	most := 0.0
	for _, t := range s.searched() {
		p, x, gains := s.model().Predict(t), s.model().Chances(from, t, noise), s.model().Between(from, t)
		slowest, risk, own := p.Time.Quantile(sure), s.risk(gains, from, t), 0.0
		joins := false
		if shared && math.Mod(from[tuning.Cores].Float(), t[tuning.Cores].Float()) == 0 { // others that try it use the cores which it leaves
			risk, own = gains, -math.Expm1(gains.Mean+gains.SD*gains.SD/2)
			if joins = s.joins(t) && gains.Quantile(-sure) < noise; joins {
				own = 1 // those would be idle
			}
		}
		loss := lost(risk)
		tooSlow := x.Kept < likely || s.Policy.Checkpoint == nil && !s.withinSlowdown(slowest) || s.outlasts(p) || s.lasts(longest, slowest)
		if s.Policy.Part(s.Own, t) > r.Room+1e-9 || t.EqualButMemory(from) || s.lawless(t) || s.beyond(t) || tooSlow ||
			!joins && (x.Saves < noise || math.Expm1(risk.Quantile(sure)) > min(lossShare*float64(search.Trials), riskiest)) {
			continue
		}
		if v := own + after*x.Saves - s.Site.Margin*loss; v > most {
			most, best, evidence = v, t, append(predictedEvidence(p), tuning.Evidence{Name: "predicted_saving_share", Value: x.Saves},
				tuning.Evidence{Name: "trials_to_follow", Value: after}, tuning.Evidence{Name: "predicted_loss_share", Value: loss})
		}
	}
	return best, evidence, best != nil
}

// joins reports whether the cores that trials which try a setting left are not all in use.
func (s view) joins(t tuning.Settings) bool {
	sum := 0.0
	for _, u := range s.Returns.Underway {
		if u[tuning.Cores] == t[tuning.Cores] {
			sum += s.Policy.Part(s.Own, u)
		}
	}
	return math.Abs(sum-math.Round(sum)) > 1e-9
}

// home returns a trial that began under another setting than its owner's to that where it is sure to end sooner so, since no
// other waits for cores any more.
func (s view) home() tuning.Decision {
	t, evidence := s.Policy.TrialOf, classEvidence(s.Class)
	if t == nil || !t.Share.Fit(s.Own) || respond.UsageOf(s.Profile, s.Own) == nil || s.spent() != tuning.ReasonNone {
		return hold(s, tuning.ReasonAlreadyBest, evidence...)
	}
	back := s.model().Between(s.Current, s.Own)
	saving := s.saves(gain{}, gain{back.Mean, back.SD})
	if s.pays(saving, tuning.ReasonWorthless) != tuning.ReasonNone {
		return hold(s, tuning.ReasonAlreadyBest, evidence...)
	}
	return decide(s, tuning.RollBack, tuning.ReasonNoTrialWaits, s.Own, append(evidence, worthAtLeast(s, saving)...)...)
}

func rightSize(s view) (tuning.Value, bool) {
	k, ok := s.Policy.Knob(tuning.Memory)
	own, asked := s.Own[tuning.Memory]
	if !ok || !asked || s.MemoryHeld || s.PeakRSS <= 0 || s.PeakRuns == 0 {
		return tuning.Value{}, false
	}
	reserve := memoryReserve
	if s.PeakRuns < memoryFewRuns {
		reserve = memoryReserveFew
	}
	const mib = 1 << 20
	need := math.Ceil(float64(s.PeakRSS)*reserve/mib) * mib
	if k.Min.IsSet() {
		need = math.Max(need, k.Min.Float())
	}
	byNumber := func(a, b tuning.Value) int { return cmp.Compare(a.Float(), b.Float()) }
	listed := slices.SortedFunc(slices.Values(k.Values), byNumber)
	if i := slices.IndexFunc(listed, func(v tuning.Value) bool { return v.Float() >= need }); i >= 0 {
		need = listed[i].Float()
	}
	v := tuning.Number(need)
	return v, !s.ranOut(v) && k.Allows(v) && need < own.Float()
}

func (s view) returning() bool { return s.Policy.Budget.Returns > 0 && s.Returns != nil }

// tryReturn runs a job all the way under a setting that may be better.
func tryReturn(s view) (tuning.Decision, bool) {
	if !s.returning() || s.untriable() != tuning.ReasonNone {
		return tuning.Decision{}, false
	}
	target := s.target(s.possible(s.Returns.Next))
	if memory, ok := rightSize(s); ok {
		target = target.With(tuning.Memory, memory)
	}
	return decide(s, tuning.Move, tuning.ReasonTryingReturn, target, s.returnsEvidence()...), true
}

func (s view) untriable() tuning.Reason {
	r := s.Returns
	switch {
	case s.Policy.Mode != tuning.Apply:
		return tuning.ReasonRecommend
	case s.Site.DryRun:
		return tuning.ReasonDryRun
	case r.Reason != tuning.ReasonNone:
		return r.Reason
	case r.Spent >= s.Policy.Budget.Returns:
		return tuning.ReasonBudgetReturns
	case float64(r.Spent+1) > s.Site.ProbeShare*float64(r.Runs+1):
		return tuning.ReasonSiteCap // of the work of its kind, this run's included
	case math.IsNaN(r.Expected) || math.IsNaN(r.Error):
		return tuning.ReasonAlreadyBest
	}
	target := s.target(s.possible(r.Next))
	switch {
	case target.EqualButMemory(s.Own):
		return tuning.ReasonAlreadyBest
	case s.harmed(target):
		return tuning.ReasonRemembered
	case s.overrunsLimit(s.model().Predict(target).Time.Quantile(sure)):
		return tuning.ReasonSlower
	case s.Policy.Checkpoint != nil && r.Longest > 0 && s.factors()*s.price().Seconds() > lossShare*r.Longest && !s.surely(s.Own, target):
		return tuning.ReasonLossLimit // the way back alone would cost more
	}
	return tuning.ReasonNone
}

func (s view) bestOfKind() (tuning.Effect, bool) {
	best, found := bestEffect(s, s.KindEffects)
	if s.Returns == nil || s.Returns.Best == nil {
		return best, found
	}
	whole := *s.Returns.Best
	whole.Settings = s.possible(whole.Settings)
	if len(whole.Settings) == 0 || s.objection(whole) != tuning.ReasonNone || found && best.LogRatio <= whole.LogRatio {
		return best, found
	}
	return whole, true
}

func (s view) returnsEvidence() []tuning.Evidence {
	if !s.returning() {
		return nil
	}
	r := s.Returns
	out := []tuning.Evidence{
		{Name: "returns_seen", Value: float64(r.Runs)},
		{Name: "returns_tried", Value: float64(r.Spent)},
		{Name: "returns_allowed", Value: float64(s.Policy.Budget.Returns)},
	}
	if r.EndsNeeded > 0 {
		out = append(out, tuning.Evidence{Name: "own_runs_seen", Value: float64(r.Ends)}, tuning.Evidence{Name: "own_runs_needed", Value: float64(r.EndsNeeded)})
	}
	if len(r.Next) == 0 {
		return out
	}
	return append(
		out,
		tuning.Evidence{Name: "return_setting", Text: r.Next.String()},
		tuning.Evidence{Name: "return_setting_runs", Value: float64(r.Again)},
		tuning.Evidence{Name: "return_expected_log_ratio", Value: r.Expected},
		tuning.Evidence{Name: "return_standard_error", Value: r.Error},
		tuning.Evidence{Name: "returns_differ", Value: r.Between},
	)
}

func (s view) wholeRuns() []tuning.Evidence {
	var names []string
	for _, k := range s.Policy.Knobs {
		if s.Policy.Learns(k.Name) {
			names = append(names, k.Name)
		}
	}
	out := []tuning.Evidence{{Name: "hyperparameters", Text: strings.Join(names, " ")}}
	if seen := s.returnsEvidence(); len(seen) > 0 {
		return append(out, seen...)
	}
	return append(out, tuning.Evidence{Name: "returns_allowed", Value: float64(s.Policy.Budget.Returns)})
}

// Unlikely returns a function that reports whether a whole run is unlikely to save enough, judged by the
// profile of an earlier run.
func Unlikely(state tuning.State) func(tuning.Settings) bool {
	s := look(state)
	return func(t tuning.Settings) bool {
		if respond.UsageOf(s.Profile, s.Own) == nil {
			return false
		}
		target := s.Policy.Over(s.Own, tuning.Settings{tuning.Cores: t[tuning.Cores]})
		x := s.chances(target)
		return t[tuning.Cores].IsSet() && !target.EqualButMemory(s.Own) && x.Saves < runSaves && x.Likely < likely
	}
}
