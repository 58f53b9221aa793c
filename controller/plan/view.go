package plan

import (
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// view is a State with the questions that the planner asks it.
type view struct{ tuning.State }

// target is the owner's settings with those of t in place, following knobs
// included.
func (s view) target(t tuning.Settings) tuning.Settings {
	return s.Policy.Complete(s.Own.Merge(t))
}

// usable keeps the settings that this job's policy allows, and hyperparameters
// only under a quality guard.
func (s view) usable(t tuning.Settings) tuning.Settings {
	return t.Only(func(name string) bool {
		k, ok := s.Policy.Knob(name)
		return ok && k.Follows == "" && k.Allows(t[name]) && name != tuning.Memory &&
			(tuning.IsSystem(name) || s.Policy.Quality != nil)
	})
}

// allowed tells whether an effect may be relied on.
func (s view) allowed(e tuning.Effect) bool {
	if e.Runs < 1 || e.LogRatio > -noise {
		return false
	}
	// The spread within a run says little about that between runs, so with few
	// runs the doubt is at least what runs usually differ by.
	if se := math.Hypot(e.SD, betweenRuns) / math.Sqrt(float64(e.Runs)); e.LogRatio+sigmas*se >= 0 {
		return false
	}
	if s.Policy.MaxSlowdown > 0 && e.LogTime > math.Log(s.Policy.MaxSlowdown) {
		return false
	}
	return !slices.ContainsFunc(s.Regressed, s.target(e.Settings).Equal)
}

// supported keeps the effects that enough jobs of the class have shown.
func supported(effects []tuning.Effect) []tuning.Effect {
	var out []tuning.Effect
	for _, e := range effects {
		if e.Runs >= classRuns {
			out = append(out, e)
		}
	}
	return out
}

func (s view) overEnergy() bool {
	return s.Joules != nil && *s.Joules >= s.Policy.Budget.Energy && (s.JoulesSource != tuning.Modelled || s.Site.EnforceModel)
}

func (s view) epochsPerProbe() int {
	return s.Policy.Profile.WarmupEpochs + s.Policy.Profile.Epochs
}

// spent says why no further restart is allowed, or ReasonNone. To the site every
// probe is a restart of the job too.
func (s view) spent() tuning.Reason {
	switch {
	case s.Restarts >= s.Policy.Budget.Restarts:
		return tuning.ReasonBudgetRestarts
	case s.Site.JobRestarts > 0 && s.Restarts+s.Probes >= s.Site.JobRestarts:
		return tuning.ReasonSiteCap
	}
	return tuning.ReasonNone
}

// currentGain is the measured log ratio of the present setting to the owner's.
func (s view) currentGain() float64 {
	own, ok := tuning.Reference(s.Trials)
	if !ok {
		return 0
	}
	for _, t := range s.Trials {
		if t.Settings.Equal(s.Current) {
			gain, _ := t.LogRatio(own, s.Policy.Objective, s.Policy.Weight)
			return gain
		}
	}
	return 0
}

func (s view) gainOf(gained bool) float64 {
	if gained {
		return s.BestGain
	}
	return 0
}

func worthless(s view) tuning.Reason {
	if s.Remaining()*optimism <= s.Site.Margin*s.RestartCost.Seconds() {
		return tuning.ReasonTooShort
	}
	return tuning.ReasonWorthless
}

func hold(s view, r tuning.Reason, evidence ...tuning.Evidence) tuning.Decision {
	return tuning.Decision{Action: tuning.Hold, Reason: r, Evidence: evidence, At: s.Now}
}

// advise holds, and names what would be better where that is known.
func advise(s view, r tuning.Reason) tuning.Decision {
	d := hold(s, r)
	if e, _, ok := known(s); ok {
		d.Advice = s.target(e.Settings)
		d.Evidence = effectEvidence(e)
	}
	return d
}

func decide(s view, a tuning.Action, r tuning.Reason, to tuning.Settings, evidence ...tuning.Evidence) tuning.Decision {
	return tuning.Decision{Action: a, Reason: r, Settings: to, Evidence: evidence, At: s.Now}
}

// restrain turns what may not be done into advice, and refuses what no policy
// allows: the last guard before a decision leaves the package.
func restrain(s view, d tuning.Decision) tuning.Decision {
	if d.Action == tuning.Hold {
		return d
	}
	if knob, ok := s.Policy.Permits(s.Own, d.Settings); !ok {
		return hold(s, tuning.ReasonSiteForbids, append(d.Evidence, tuning.Evidence{Name: "knob", Text: knob})...)
	}
	why := tuning.ReasonNone
	switch {
	case s.Policy.Mode != tuning.Apply:
		why = tuning.ReasonRecommend
	case s.Site.DryRun:
		why = tuning.ReasonDryRun
	}
	if why == tuning.ReasonNone {
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
	if c.NearestID != "" {
		out = append(out, tuning.Evidence{Name: "distance", Value: c.Distance}, tuning.Evidence{Name: "radius", Value: c.Radius})
	}
	return out
}

// worth is the evidence of the comparison of a saving with its restarts.
func worth(s view, saving float64, restarts int) []tuning.Evidence {
	return []tuning.Evidence{
		{Name: "remaining_seconds", Value: s.Remaining()},
		{Name: "predicted_saving_seconds", Value: saving},
		{Name: "restart_cost_seconds", Value: float64(restarts) * s.RestartCost.Seconds()},
		{Name: "margin", Value: s.Site.Margin},
	}
}
