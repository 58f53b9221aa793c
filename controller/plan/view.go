package plan

import (
	"math"
	"slices"

	"pitchpipe/controller/respond"
	"pitchpipe/controller/tuning"
)

// view is a State with the questions that the planner asks.
type view struct {
	tuning.State
	model func() *respond.Model // built on first use
}

func (s view) target(t tuning.Settings) tuning.Settings {
	return s.Policy.Over(s.Own, t)
}

// goal is target for a running job: its memory is worth no restart.
func (s view) goal(t tuning.Settings) tuning.Settings {
	out := s.target(t)
	now, ok := s.Current[tuning.Memory]
	if k, found := s.Policy.Knob(tuning.Memory); ok && found && k.Allows(now) {
		out[tuning.Memory] = now
	}
	return out
}

// usable keeps what the policy allows; nothing if the settings also changed what the job learned.
func (s view) usable(t tuning.Settings) tuning.Settings {
	if s.Policy.Relearns(s.Own, t) {
		return nil
	}
	return s.possible(t)
}

func (s view) possible(t tuning.Settings) tuning.Settings {
	return t.Only(func(name string) bool {
		k, ok := s.Policy.Knob(name)
		if ok && k.Follows != "" { // left to the program, or as the knob that it follows
			return !s.Own[name].IsSet() && t[name] == t[k.Follows]
		}
		return ok && k.Allows(t[name]) && tuning.Settable(name) && s.Policy.Guarded(name)
	})
}

func (s view) epochsPerProbe() int { return s.Policy.Profile.WarmupEpochs + s.Policy.Profile.Epochs }

// For the site a probe is a restart too.
func (s view) spent() tuning.Reason {
	switch {
	case s.Restarts >= s.Policy.Budget.Restarts:
		return tuning.ReasonBudgetRestarts
	case s.Site.JobRestarts > 0 && s.Restarts+s.Probes >= s.Site.JobRestarts:
		return tuning.ReasonSiteCap
	}
	return tuning.ReasonNone
}

func (s view) trialOf(t tuning.Settings) (tuning.Trial, bool) {
	return tuning.First(s.Trials, func(x tuning.Trial) bool { return x.Settings.Equal(t) })
}

func (s view) ranUnder(t tuning.Settings) bool {
	return slices.ContainsFunc(s.Trials, func(x tuning.Trial) bool { return x.Settings.EqualButMemory(t) })
}

func (s view) judged(t tuning.Settings) bool {
	x, ok := s.trialOf(t)
	return ok && x.Epochs >= s.Policy.Profile.Epochs
}

// present is the gain of the present setting and its log ratio of seconds: measured in this job,
// else in its kind.
func (s view) present() (g gain, logTime float64) {
	own, measured := tuning.Reference(s.Trials)
	if t, ok := s.trialOf(s.Current); ok && measured {
		g, _ = s.gainOf(t)
		if t.Seconds > 0 && own.Seconds > 0 {
			logTime = math.Log(t.Seconds / own.Seconds)
		}
		return g, logTime
	}
	for _, e := range s.KindEffects {
		if !s.Current.Equal(s.Own) && s.target(s.usable(e.Settings)).EqualButMemory(s.Current) {
			return gainOfEffect(e), e.LogTime
		}
	}
	return gain{}, 0
}

func hold(s view, r tuning.Reason, evidence ...tuning.Evidence) tuning.Decision {
	return decide(s, tuning.Hold, r, nil, evidence...)
}

// advise holds, and names a better setting if one is known.
func advise(s view, r tuning.Reason, evidence ...tuning.Evidence) tuning.Decision {
	d := hold(s, r, evidence...)
	if e, _, ok := known(s); ok {
		if target := s.goal(e.Settings); !target.Equal(s.Current) {
			d.Advice = target
			d.Evidence = append(d.Evidence, legible(effectEvidence(e))...)
		}
	}
	return d
}

func legible(evidence []tuning.Evidence) []tuning.Evidence {
	for i, e := range evidence {
		if !tuning.Finite(e.Value) {
			evidence[i].Value, evidence[i].Text = 0, "not a number"
		}
	}
	return evidence
}

func decide(s view, a tuning.Action, r tuning.Reason, to tuning.Settings, evidence ...tuning.Evidence) tuning.Decision {
	return tuning.Decision{Action: a, Reason: r, Settings: to, Evidence: legible(evidence), At: s.Now}
}

// restrain is the last guard on a decision: it returns d, or a hold instead.
func restrain(s view, d tuning.Decision) tuning.Decision {
	if d.Action == tuning.Hold {
		return d
	}
	if knob, ok := s.Policy.Permits(s.Own, d.Settings); !ok {
		return hold(s, tuning.ReasonSiteForbids, append(d.Evidence, tuning.Evidence{Name: "knob", Text: knob})...)
	}
	if !s.Pending && d.Action != tuning.RollBack && (s.Policy.Relearns(s.Current, d.Settings) || s.Policy.Relearns(d.Settings, s.Current)) {
		return hold(s, tuning.ReasonWholeRuns, append(d.Evidence, s.wholeRuns()...)...)
	}
	why := tuning.ReasonDryRun
	if s.Policy.Mode != tuning.Apply {
		why = tuning.ReasonRecommend
	} else if !s.Site.DryRun {
		return d
	}
	out := hold(s, why, append(d.Evidence, tuning.Evidence{Name: "would", Text: string(d.Action)},
		tuning.Evidence{Name: "because", Text: string(d.Reason)})...)
	if d.Action != tuning.Probe {
		out.Advice = d.Settings
	}
	return out
}

func effectEvidence(e tuning.Effect) []tuning.Evidence {
	return []tuning.Evidence{
		{Name: "known_log_ratio", Value: e.LogRatio},
		{Name: "known_runs", Value: float64(e.Runs)},
		{Name: "known_setting", Text: e.Settings.String()},
	}
}

func classEvidence(c *tuning.Class) []tuning.Evidence {
	if c == nil {
		return nil
	}
	out := []tuning.Evidence{{Name: "class_reason", Text: string(c.Reason)}}
	if c.Known() {
		out = append(out, tuning.Evidence{Name: "class", Text: c.ID})
	}
	if c.RunnerUpID != "" {
		out = append(out, tuning.Evidence{Name: "classes_alike", Text: c.NearestID + " " + c.RunnerUpID})
	}
	if c.Support > 0 {
		out = append(out, tuning.Evidence{Name: "class_runs", Value: float64(c.Support)})
	}
	for _, f := range c.Cautions {
		out = append(out, tuning.Evidence{Name: "profile_caution", Text: string(f)})
	}
	if c.NearestID != "" {
		out = append(out, tuning.Evidence{Name: "distance", Value: c.Distance}, tuning.Evidence{Name: "radius", Value: c.Radius})
	}
	return out
}

const (
	classRuns   = 2    // jobs in which a class must have shown an effect
	betweenRuns = 0.04 // usual log ratio between two runs of the same job
)

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

// remembered reports whether the only objection to an effect is a remembered regression.
func remembered(s view) bool {
	forgetful := s
	forgetful.Regressed = nil
	_, now := bestEffect(s, s.KindEffects)
	_, then := bestEffect(forgetful, s.KindEffects)
	return then && !now
}

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

func (s view) objection(e tuning.Effect) tuning.Reason {
	switch {
	case e.Runs < 1:
		return tuning.ReasonFewRuns
	case math.IsInf(e.LogRatio, 0) || !(e.LogRatio <= -noise):
		return tuning.ReasonNeutral
	case !(e.LogRatio+sigmas*e.Error(betweenRuns) < 0):
		return tuning.ReasonInconclusive
	case !s.withinSlowdown(e.LogTime + sure*e.Apart), s.overrunsLimit(e.LogTime + sure*e.Apart):
		return tuning.ReasonSlower
	case s.harmed(s.target(e.Settings)):
		return tuning.ReasonRemembered
	}
	return tuning.ReasonNone
}

// Not ok without a trial of the owner's settings.
func (s view) gainOf(t tuning.Trial) (gain, bool) {
	own, ok := tuning.Reference(s.Trials)
	if !ok {
		return gain{}, false
	}
	ratio, ok := t.LogRatio(own, s.Policy.Measure())
	if !ok || t.Reference {
		return gain{}, ok
	}
	return gain{ratio, s.factors() * t.RatioError(own, tuning.EpochSD(s.Trials...))}, true // joules are taken to vary with the seconds
}

func gainOfEffect(e tuning.Effect) gain { return gain{e.LogRatio, e.Error(betweenRuns)} }

func supported(effects []tuning.Effect) []tuning.Effect {
	return slices.DeleteFunc(slices.Clone(effects), func(e tuning.Effect) bool { return e.Runs < classRuns })
}

// A setting that failed with less memory may have failed for that.
func (s view) harmed(t tuning.Settings) bool {
	now, bounded := t[tuning.Memory]
	return slices.ContainsFunc(s.Regressed, func(r tuning.Settings) bool {
		then, ok := r[tuning.Memory]
		return r.EqualButMemory(t) && (!ok || !bounded || now.Float() <= then.Float())
	})
}

func (s view) ranOut(memory tuning.Value) bool {
	return slices.ContainsFunc(s.Regressed, func(r tuning.Settings) bool {
		then, ok := r[tuning.Memory]
		return ok && memory.Float() <= then.Float()
	})
}
