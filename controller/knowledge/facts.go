package knowledge

import (
	"slices"
	"time"

	"pitchpipe/controller/tuning"
)

// PeakRSS is the largest memory seen in jobs of the kind and in how many of them
// any was seen. A job that others disturbed needs its memory all the same.
func PeakRSS(obs []Observation, kind tuning.JobKind) (peak tuning.Bytes, jobs int) {
	seen := map[string]bool{}
	for _, o := range ofKind(obs, kind) {
		if p := o.peak(); p > 0 {
			peak = max(peak, p)
			seen[o.Job] = true
		}
	}
	return peak, len(seen)
}

// Regressions are the settings that made jobs of the kind worse, in the order in
// which they last did. A later job that improved under the same settings clears
// them.
func Regressions(obs []Observation, kind tuning.JobKind) []tuning.Settings {
	var out []tuning.Settings
	forget := func(s tuning.Settings) {
		out = slices.DeleteFunc(out, s.Equal)
	}
	remember := func(s tuning.Settings) {
		forget(s)
		out = append(out, s)
	}
	for _, o := range unique(ofKind(obs, kind)) {
		if c := o.Outcome; c != nil && len(c.Tuned) > 0 {
			switch c.Verdict {
			case tuning.Regressed:
				remember(c.Tuned)
			case tuning.Improved:
				forget(c.Tuned)
			case tuning.Neutral, tuning.Inconclusive:
			}
		}
		for _, s := range o.Regressed {
			if len(s) > 0 {
				remember(s)
			}
		}
	}
	return out
}

// LastReference is what the newest job of the kind that ran under its owner's
// settings measured there.
func LastReference(obs []Observation, kind tuning.JobKind) (tuning.Trial, bool) {
	rs := runs(ofKind(obs, kind))
	slices.SortStableFunc(rs, func(a, b run) int { return b.at.Compare(a.at) })
	for _, r := range rs {
		if t, ok := r.reference(); ok {
			return t, true
		}
	}
	return tuning.Trial{}, false
}

// RestartCost is the median cost of a restart of jobs of the kind, and of how
// many restarts; where the kind has none, of all jobs.
func RestartCost(obs []Observation, kind tuning.JobKind) (cost time.Duration, restarts int) {
	var all, own []time.Duration
	for _, o := range unique(obs) {
		all = append(all, o.RestartCosts...)
		if o.Kind == kind {
			own = append(own, o.RestartCosts...)
		}
	}
	if len(own) > 0 {
		return median(own), len(own)
	}
	return median(all), len(all)
}

func median(ds []time.Duration) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(ds))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// Jobs counts the jobs among the observations.
func Jobs(obs []Observation) int {
	type key struct {
		kind tuning.JobKind
		job  string
	}
	seen := map[key]bool{}
	for _, o := range obs {
		seen[key{o.Kind, o.Job}] = true
	}
	return len(seen)
}
