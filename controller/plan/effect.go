package plan

import (
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

const (
	// classRuns is in how many jobs of a class an effect must have been seen before
	// it is used for another kind of job: one job's experience is not a class's.
	classRuns = 2

	// betweenRuns is the log ratio by which two runs of the same job usually differ.
	betweenRuns = 0.04
)

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

// remembered reports whether an effect of the kind would be used, were it not
// remembered to have made its jobs worse.
func remembered(s view) bool {
	forgetful := s
	forgetful.Regressed = nil
	_, now := bestEffect(s, s.KindEffects)
	_, then := bestEffect(forgetful, s.KindEffects)
	return then && !now
}

// bestEffect is the effect with the lowest log ratio that is permitted, not
// remembered as bad, within the allowed slowdown, and clear of noise.
func bestEffect(s view, effects []tuning.Effect) (tuning.Effect, bool) {
	var best tuning.Effect
	found := false
	for _, e := range effects {
		e.Settings = s.usable(e.Settings)
		if len(e.Settings) > 0 && s.objection(e) == tuning.ReasonNone && (!found || e.LogRatio < best.LogRatio) {
			best, found = e, true
		}
	}
	return best, found
}

// objection says why an effect is not relied on, or ReasonNone. What is no number is not.
func (s view) objection(e tuning.Effect) tuning.Reason {
	switch {
	case e.Runs < 1:
		return tuning.ReasonFewRuns
	case math.IsInf(e.LogRatio, 0) || !(e.LogRatio <= -noise):
		return tuning.ReasonNeutral
	case !(e.LogRatio+sigmas*standardError(e) < 0):
		return tuning.ReasonInconclusive
	case !s.withinSlowdown(e.LogTime):
		return tuning.ReasonSlower
	case s.hurt(s.target(e.Settings)):
		return tuning.ReasonRemembered
	}
	return tuning.ReasonNone
}

// gainOf is what a trial of this job shows; not ok without the owner's to compare.
func (s view) gainOf(t tuning.Trial) (gain, bool) {
	own, ok := tuning.Reference(s.Trials)
	if !ok {
		return gain{}, false
	}
	ratio, ok := t.LogRatio(own, s.Policy.Measure())
	if !ok || t.Reference {
		return gain{}, ok
	}
	return gain{ratio, s.trialError(t, own)}, true
}

// What is assumed of an epoch: by how much ln(seconds) usually spreads within a job,
// which counts as much as this many epochs, since trials are short.
const (
	usualSD      = 0.05
	usualDegrees = 4
)

// trialError is the standard error of the log ratio of two trials. Joules are taken to
// vary as the seconds do, and together with them.
func (s view) trialError(t, own tuning.Trial) float64 {
	squares, degrees := usualDegrees*usualSD*usualSD, float64(usualDegrees)
	for _, x := range s.Trials {
		if x.Epochs > 1 && !x.Failed && x.SDLog >= 0 {
			squares += float64(x.Epochs-1) * x.SDLog * x.SDLog
			degrees += float64(x.Epochs - 1)
		}
	}
	n, m := float64(max(t.Epochs, 1)), float64(max(own.Epochs, 1))
	return s.factors() * math.Sqrt(squares/degrees*(1/n+1/m))
}

// gainOfEffect is what others showed.
func gainOfEffect(e tuning.Effect) gain { return gain{e.LogRatio, standardError(e)} }

// standardError is that of an effect. The spread within a run says little about that between
// runs, which is taken to be what is usual at least. It grows with age.
func standardError(e tuning.Effect) float64 {
	return math.Hypot(e.SD, betweenRuns) / math.Sqrt(e.Fresh())
}

// supported keeps the effects that enough jobs of the class have shown.
func supported(effects []tuning.Effect) []tuning.Effect {
	return slices.DeleteFunc(slices.Clone(effects), func(e tuning.Effect) bool { return e.Runs < classRuns })
}

// hurt reports whether a setting is remembered to have made jobs worse, with no
// less memory than now: what failed with less may have failed for that.
func (s view) hurt(t tuning.Settings) bool {
	now, bounded := t[tuning.Memory]
	return slices.ContainsFunc(s.Regressed, func(r tuning.Settings) bool {
		then, ok := r[tuning.Memory]
		return r.EqualButMemory(t) && (!ok || !bounded || now.Float() <= then.Float())
	})
}

// ranOut reports whether so much memory, or more, was part of what made jobs worse.
func (s view) ranOut(memory tuning.Value) bool {
	return slices.ContainsFunc(s.Regressed, func(r tuning.Settings) bool {
		then, ok := r[tuning.Memory]
		return ok && memory.Float() <= then.Float()
	})
}
