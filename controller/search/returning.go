package search

import "pitchpipe/controller/tuning"

// halfLife is after how many days what a run showed counts for half.
const halfLife = 90

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
	epochal, reason := study.dimensions() // that epochs can judge
	if reason != tuning.ReasonNone && reason != tuning.ReasonWholeRuns {
		out.Reason = reason
		return out
	}
	h := history{Returning: r, study: study, dims: r.Space}
	h.watch()
	if len(epochal) < len(r.Space) && r.Policy.Quality != nil {
		out.Ends, out.EndsNeeded = h.ends(), ownEnds
	}
	if out.Ends < ownEnds { // until then the guard cannot tell
		h.dims = epochal
	}
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
	case !advice.Trying && out.Ends < out.EndsNeeded:
		out.Reason = tuning.ReasonWholeRuns
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

// ends counts the runs under the owner's hyperparameters that showed what they end with,
// after having reached the target where there is one.
func (h *history) ends() int {
	n := 0
	for _, p := range h.Past {
		if p.Quality != nil && h.length(p) > 0 && h.learning(p.Began) == h.guard.own && h.comparable(p.Began) {
			n++
		}
	}
	return n
}
