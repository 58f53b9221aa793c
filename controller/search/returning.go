package search

import (
	"math"
	"slices"

	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
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

	// Unlikely reports whether what is known of the job's cores speaks against settings; nil:
	// nothing is.
	Unlikely func(tuning.Settings) bool
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
	h := r.history()
	epochal, reason := h.study.epochal()
	if reason != tuning.ReasonNone && reason != tuning.ReasonWholeRuns {
		out.Reason = reason
		return out
	}
	if len(epochal.Space) < len(r.Space) && r.Policy.Quality != nil {
		out.Ends, out.EndsNeeded = h.ends(), ownEnds
	}
	if out.Ends < ownEnds { // until then the guard cannot tell
		h.study = epochal
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
	out.Longest = h.longest()
	for _, s := range advice.Standings {
		e := h.effect(s)
		if !r.Policy.Relearns(r.Own, e.Settings) {
			out.Seen = append(out.Seen, e)
		}
	}
	if advice.Best.Point != whole.Space.Own {
		out.Best = new(h.effect(advice.Best))
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
		out.Next, out.Again = h.study.settings(h.points[advice.Next.Point]), advice.Next.Runs
		out.Expected, out.Error = advice.Next.Ratio, advice.Next.SE
	}
	return out
}

// standLevel is the level of the interval by which whole runs are compared: each of its ends
// is sure at 95 %.
const standLevel = 0.90

// Stands compares the runs that were made under the settings s with those under the owner's:
// by the mixed model of the tuner, with Student's t. False: there are none of both.
func (r Returning) Stands(s tuning.Settings) (tuning.Outcome, bool) {
	h := r.history()
	h.grid()
	whole := h.whole()
	at := h.index(s)
	advice, err := whole.Next()
	i := slices.IndexFunc(advice.Standings, func(x recur.Standing) bool { return x.Point == at })
	if err != nil || i < 0 || at == whole.Space.Own || r.Policy.Relearns(r.Own, s) || !h.comparable(s) {
		return tuning.Outcome{}, false
	}
	x := advice.Standings[i]
	reach := recur.Beyond(advice.Degrees, 1) * x.SE
	out := tuning.Outcome{
		Verdict: tuning.Inconclusive, Reason: tuning.ReasonInconclusive, Measure: r.Policy.Objective, LogRatio: x.Ratio,
		Low: x.Ratio - reach, High: x.Ratio + reach, Level: standLevel, Runs: x.Runs, Baseline: r.Own, Tuned: s,
		NoEnergy: whole.Goal.Measure != r.Policy.Measure(),
	}
	if whole.Goal.Measure.NeedsJoules() {
		out.Source = h.source()
	}
	switch slow := r.Policy.MaxSlowdown; {
	case out.Low > 0:
		out.Verdict, out.Reason = tuning.Regressed, tuning.ReasonRegressed
	case slow > 0 && x.Seconds-reach > math.Log(slow):
		out.Verdict, out.Reason = tuning.Regressed, tuning.ReasonSlower
	case out.High < 0:
		out.Verdict, out.Reason = tuning.Improved, tuning.ReasonImproved
	}
	return out, true
}

// longest is how many seconds the epochs of the longest run under the owner's settings took.
func (h *history) longest() float64 {
	out := 0.0
	for _, p := range h.Past {
		for _, t := range p.Trials {
			if p.End == tuning.EndReached && h.comparable(t.Settings) && h.index(t.Settings) == 0 {
				out = max(out, float64(p.Epochs)*t.Seconds)
			}
		}
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
