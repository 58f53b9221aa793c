package search

import (
	"slices"

	"pitchpipe/controller/tuning"
)

const (
	// guardedRuns is in how many runs under the owner's hyperparameters the quality that
	// they end with must have been seen before a run is held against it: two differ by
	// their seeds alone. Before that the guard guards nothing, and no others are tried.
	guardedRuns = 3

	// halfLife is after how many days what a run showed counts for half.
	halfLife = 90
)

// Returning is a kind of job one run of which is about to start.
type Returning struct {
	Policy   tuning.Policy     // narrowed by the site
	Own      tuning.Settings   // as its owner submitted this run
	Space    []Dimension       // from Space
	Past     []tuning.PastRun  // in any order
	Avoid    []tuning.Settings // that made jobs of the kind worse
	Underway []tuning.Settings // that other runs of the kind are trying now
	Modelled bool              // joules that were only computed may decide
}

// Propose says what this run should try and what is known to be better, by the tuner of
// package recur for whole runs. It holds nothing: the same past gives the same answer.
func (r Returning) Propose() tuning.Returns {
	out := tuning.Returns{Spent: len(r.Underway)}
	for _, p := range r.Past {
		if p.Trying {
			out.Spent++
		}
	}
	study := Study{Policy: r.Policy, Own: r.Own, Space: r.Space}
	dims, reason := study.dimensions()
	if reason != tuning.ReasonNone {
		out.Reason = reason
		return out
	}
	h := history{Returning: r, study: study, dims: r.guarded(dims)}
	h.grid()
	whole := h.whole()
	out.Runs = len(whole.Runs)
	advice, err := whole.Next()
	switch {
	case err != nil: // a space without its owner's settings, which grid does not make
		out.Reason = tuning.ReasonNoKnobs
		return out
	case !advice.Measured:
		out.Reason = h.unmeasured()
		return out
	}
	out.Between = advice.Between
	if advice.Best != whole.Space.Own {
		out.Best = h.effect(advice)
	}
	switch {
	case !advice.Trying && len(r.Underway) > 0 && out.Best == nil:
		out.Reason = tuning.ReasonBudgetReturns // others try what there is to try
	case !advice.Trying:
		out.Reason = tuning.ReasonAlreadyBest
	case out.Spent >= r.Policy.Budget.Returns:
		out.Reason = tuning.ReasonBudgetReturns
	default:
		out.Next, out.Again = study.settings(h.dims, h.points[advice.Point]), advice.Runs
		out.Expected, out.Error = advice.Ratio, advice.SE
	}
	return out
}

// guarded leaves hyperparameters out until their guard can tell.
func (r Returning) guarded(dims []Dimension) []Dimension {
	seen := 0
	for _, p := range r.Past {
		if p.End == tuning.EndReached && p.Quality != nil && r.taughtAlike(p.Began) {
			seen++
		}
	}
	if seen >= guardedRuns {
		return dims
	}
	return slices.DeleteFunc(slices.Clone(dims), func(d Dimension) bool { return !d.System })
}

// taughtAlike tells whether settings have the owner's hyperparameters.
func (r Returning) taughtAlike(s tuning.Settings) bool {
	return len(s) > 0 && !slices.ContainsFunc(r.Space, func(d Dimension) bool {
		return !d.System && s[d.Knob].IsSet() && s[d.Knob] != d.Own
	})
}
