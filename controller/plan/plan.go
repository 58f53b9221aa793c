package plan

import (
	"math"

	"pitchpipe/controller/tuning"
)

const (
	// optimism is the saving assumed before anything was tried: a job whose
	// remaining work would not repay its probes even if it ran twice as fast
	// afterwards is not probed.
	optimism = 0.5

	// noise is the smallest log ratio that counts as a gain, whatever the
	// measured error says: six probes of nothing save a few percent by selection.
	noise = 0.03

	// classRuns is in how many jobs of a class an effect must have been seen before
	// it is used for another kind of job: one job's experience is not a class's.
	classRuns = 2

	// betweenRuns is the log ratio by which two runs of the same job usually differ.
	betweenRuns = 0.04

	// sigmas is how many standard errors a gain must exceed.
	sigmas = 2
)

// Decide returns what to do now. The steps stand in the order of the reasons
// that outrank each other.
func Decide(state tuning.State) tuning.Decision {
	s := view{state}
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
	// 2. A tuned job that got worse returns to its owner's settings.
	if d, ok := rollBack(s); ok {
		return restrain(s, d)
	}
	// 3. A job that has not started is changed for free, if its kind is known.
	if s.Pending {
		return restrain(s, recall(s))
	}
	// 4. A running job is touched only where it can be, and measured first.
	if r := touchable(s); r != tuning.ReasonNone {
		return advise(s, r)
	}
	if s.Measured != tuning.ReasonNone {
		return unmeasured(s)
	}
	if modelled(s) {
		return advise(s, tuning.ReasonModelled)
	}
	// 5. Known settings are used, unknown ones are probed.
	return restrain(s, choose(s))
}

// Waits tells whether a hold for this reason may end by itself: the job is
// looked at again. Other holds stand until the job or the site changes.
func Waits(r tuning.Reason) bool {
	switch r { //nolint:exhaustive // a closed list of the few reasons that pass with time
	case tuning.ReasonWarmingUp, tuning.ReasonProfiling, tuning.ReasonPolluted, tuning.ReasonNoSamples,
		tuning.ReasonPaused, tuning.ReasonSiteCap, tuning.ReasonFirstSeen, tuning.ReasonUnreachable,
		tuning.ReasonNoTotal:
		return true
	}
	return false
}

// modelled tells whether the objective counts joules that are only computed: they
// are right on average and wrong on this job, so nothing is moved by them.
func modelled(s view) bool {
	joules, _ := s.Policy.Objective.Weights(s.Policy.Weight)
	return joules > 0 && s.JoulesSource == tuning.Modelled && !s.Site.EnforceModel
}

func rollBack(s view) (tuning.Decision, bool) {
	o := s.Outcome
	if o == nil || o.Verdict != tuning.Regressed || s.Pending || s.Current.Equal(s.Own) {
		return tuning.Decision{}, false
	}
	evidence := []tuning.Evidence{
		{Name: "log_ratio", Value: o.LogRatio},
		{Name: "log_ratio_low", Value: o.Low},
		{Name: "log_ratio_high", Value: o.High},
		{Name: "pairs", Value: float64(o.Pairs)},
	}
	if r := touchable(s); r != tuning.ReasonNone {
		return hold(s, r, evidence...), true
	}
	if r := s.spent(); r != tuning.ReasonNone {
		return hold(s, r, evidence...), true
	}
	reason := o.Reason
	if reason == tuning.ReasonNone {
		reason = tuning.ReasonRegressed
	}
	// What is left must be worth the way back as well.
	if saving := s.Remaining() * (math.Exp(max(o.LogRatio, 0)) - 1); saving < s.RestartCost.Seconds() {
		return hold(s, tuning.ReasonWorthless, append(evidence, worth(s, saving, 1)...)...), true
	}
	return decide(s, tuning.RollBack, reason, s.Own, evidence...), true
}

// touchable tells why a running job must be left alone, or ReasonNone.
func touchable(s view) tuning.Reason {
	b := s.Policy.Budget
	switch {
	case s.Pending:
		return tuning.ReasonNone
	case !s.Policy.Progress.IsSet():
		return tuning.ReasonNoProgress
	case s.Policy.Checkpoint == nil && !s.Site.MayRestart:
		return tuning.ReasonSiteForbids
	case s.Policy.Checkpoint == nil:
		return tuning.ReasonNoCheckpoint
	case b.Time > 0 && s.Elapsed >= b.Time:
		return tuning.ReasonBudgetTime
	case b.Energy > 0 && s.overEnergy():
		return tuning.ReasonBudgetEnergy
	case s.LimitLeft > 0 && s.LimitLeft <= s.RestartCost+s.Site.LimitReserve:
		return tuning.ReasonNearLimit
	case s.EpochsTotal == 0 && s.EpochsDone > 0:
		return tuning.ReasonNoTotal
	}
	return tuning.ReasonNone
}

// patience is how many times the epochs of a probe are waited for where others
// disturb them.
const patience = 4

// unmeasured waits for a profile. A probe that cannot be judged because others
// disturb it is not a place to stay: the job returns to its owner's settings.
func unmeasured(s view) tuning.Decision {
	disturbed := s.Measured == tuning.ReasonPolluted && s.AttemptEpochs >= patience*s.epochsPerProbe()
	if !disturbed || s.Current.Equal(s.Own) || s.spent() != tuning.ReasonNone ||
		s.Remaining() <= s.Site.Margin*s.RestartCost.Seconds() {
		return hold(s, s.Measured)
	}
	return restrain(s, decide(s, tuning.RollBack, tuning.ReasonPolluted, s.Own,
		tuning.Evidence{Name: "disturbed_epochs", Value: float64(s.AttemptEpochs)}))
}

// choose decides about a job that runs, is profiled, and may be touched.
func choose(s view) tuning.Decision {
	// What its own kind or its class taught comes before trying.
	if len(s.Trials) <= 1 {
		if e, reason, ok := known(s); ok {
			return adopt(s, e, reason)
		}
	}
	if s.NextReason == tuning.ReasonNone && len(s.Next) > 0 {
		return probe(s)
	}
	if s.NextReason == tuning.ReasonNoKnobs || s.NextReason == tuning.ReasonNoQualityGuard {
		if s.Probes == 0 && s.Current.Equal(s.Own) {
			return hold(s, s.NextReason, classEvidence(s.Class)...) // nothing was tried, nothing can be
		}
	}
	return settle(s)
}

// known is the best effect of the kind, else of the class.
func known(s view) (tuning.Effect, tuning.Reason, bool) {
	if e, ok := bestEffect(s, s.KindEffects); ok {
		return e, tuning.ReasonRecalled, true
	}
	if s.Class != nil && s.Class.Known() {
		if e, ok := bestEffect(s, supported(s.ClassEffects)); ok {
			return e, tuning.ReasonClassKnown, true
		}
	}
	return tuning.Effect{}, tuning.ReasonNone, false
}

func adopt(s view, e tuning.Effect, reason tuning.Reason) tuning.Decision {
	target := s.target(e.Settings)
	evidence := append(effectEvidence(e), classEvidence(s.Class)...)
	if target.Equal(s.Current) {
		return hold(s, tuning.ReasonAlreadyBest, evidence...)
	}
	if r := s.spent(); r != tuning.ReasonNone {
		return hold(s, r, evidence...)
	}
	saving := s.Remaining() * -math.Expm1(e.LogRatio)
	evidence = append(evidence, worth(s, saving, 1)...)
	if saving <= s.Site.Margin*s.RestartCost.Seconds() {
		return hold(s, worthless(s), evidence...)
	}
	return decide(s, tuning.Move, reason, target, evidence...)
}

func probe(s view) tuning.Decision {
	evidence := classEvidence(s.Class)
	// Probing pays only if what comes after can repay it: this probe's restart
	// and the one that would leave it, on top of what was spent.
	after := float64(s.EpochsTotal-s.EpochsDone-s.epochsPerProbe()) * s.EpochSeconds
	saving := max(0, after) * optimism
	evidence = append(evidence, worth(s, saving, 2)...)
	stop := tuning.ReasonNone
	switch {
	case s.Probes >= s.Policy.Budget.Probes:
		stop = tuning.ReasonBudgetProbes
	case s.Site.JobRestarts > 0 && s.Restarts+s.Probes+1 >= s.Site.JobRestarts:
		stop = tuning.ReasonSiteCap // a probe is a restart too, and one stays for the way back
	case s.Restarts >= s.Policy.Budget.Restarts:
		stop = tuning.ReasonBudgetRestarts // a probe that loses could not be undone
	case saving <= s.Site.Margin*2*s.RestartCost.Seconds(),
		s.EpochsTotal > 0 && float64(s.ProbeEpochs+s.epochsPerProbe()) > s.Site.ProbeShare*float64(s.EpochsTotal):
		stop = tuning.ReasonTooShort
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
	return decide(s, tuning.Probe, reason, s.target(s.Next), evidence...)
}

// settle ends the probes: the best setting stays or is taken, the owner's own
// where nothing was better.
func settle(s view) tuning.Decision {
	evidence := []tuning.Evidence{
		{Name: "best_log_ratio", Value: s.BestGain},
		{Name: "best_standard_error", Value: s.BestError},
		{Name: "settings_tried", Value: float64(len(s.Trials))},
	}
	gained := s.Best != nil && s.BestGain < -math.Max(noise, sigmas*s.BestError)
	target, reason, action := s.Own, tuning.ReasonProbesNoGain, tuning.RollBack
	if gained {
		target, reason, action = s.target(s.Best.Settings), tuning.ReasonProbeWon, tuning.Move
		evidence = append(evidence, tuning.Evidence{Name: "best", Text: s.Best.Settings.String()})
	}
	if target.Equal(s.Current) {
		if gained {
			reason = tuning.ReasonAlreadyBest
		}
		return hold(s, reason, evidence...)
	}
	if r := s.spent(); r != tuning.ReasonNone {
		return hold(s, r, evidence...)
	}
	if s.Refused != tuning.ReasonNone && action == tuning.RollBack {
		// What its owner would not accept is left whatever the way back costs.
		return decide(s, action, s.Refused, target, evidence...)
	}
	// The gain of leaving the present setting, not that over the owner's own.
	saving := s.Remaining() * (math.Exp(s.currentGain()) - math.Exp(s.gainOf(gained)))
	evidence = append(evidence, worth(s, saving, 1)...)
	if saving <= s.Site.Margin*s.RestartCost.Seconds() {
		return hold(s, tuning.ReasonWorthless, evidence...)
	}
	return decide(s, action, reason, target, evidence...)
}
