package plan

import (
	"math"

	"pitchpipe/controller/tuning"
)

const (
	// optimism is the share of the rest that an unknown setting may save where nothing
	// bounds it: as if the job ran twice as fast under it.
	optimism = 0.5

	// idleCores is what is left of the expected saving where the time alone counts and a
	// setting has fewer cores: what the job used it loses, what it did not use gains
	// nothing. On recorded runs over the cores of three machines the best such setting
	// saved 1 % of the time in the mean, where it saved 4 % of the joules.
	idleCores = 0.2
)

// promise is the share of the rest that a setting which nobody has measured is expected
// to save, by what it changes. More cores save at most what they take over from the
// others, and half of that is expected, as of threads. Fewer save what the site expects
// of an unknown setting. What a hyperparameter does nobody can tell, so that it is tried
// wherever it might repay. Each setting that was tried and disappointed makes the next
// less promising.
func (s view) promise(target tuning.Settings) float64 {
	disappointments := 0.0
	for _, t := range s.Trials {
		if g, ok := s.gainOf(t); ok && !t.Reference && !(g.ratio < -noise) {
			disappointments++
		}
	}
	return s.expected(target) / (1 + disappointments/2)
}

// expected is the promise before anything was tried.

func (s view) expected(target tuning.Settings) float64 {
	base := s.Site.ExpectedSaving
	grown, shrunk := false, false
	most := 0.0
	for _, name := range s.Own.Diff(target) {
		switch {
		case name == tuning.Memory:
			continue
		case !tuning.IsSystem(name):
			return max(base, optimism)
		}
		own, now := s.Own[name].Float(), target[name].Float()
		switch {
		case own > 0 && now > own:
			grown, most = true, max(most, 1-own/now)
		case own > 0 && now < own:
			shrunk = true
		default:
			return base
		}
	}
	joules, seconds := s.Policy.Objective.Weights(s.Policy.Weight)
	if !(joules+seconds > 0) {
		return base
	}
	share := seconds / (joules + seconds)
	switch {
	case grown:
		return max(base, share*optimism*most+(1-share)*base)
	case shrunk:
		return base * (share*idleCores + 1 - share)
	}
	return base
}

// mostPromising is what any setting may promise this job: where not even that repays a
// probe the job is too short for all.
func (s view) mostPromising() float64 { return math.Max(s.Site.ExpectedSaving, optimism) }
