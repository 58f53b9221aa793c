package search

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// Returning is a kind of job that is about to run once more.
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

// Propose returns what this run should try and what is known to be better.
func (r Returning) Propose() tuning.Returns {
	out := tuning.Returns{Spent: len(r.Underway) + int(r.Policy.Tried(r.Own, r.Past))}
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

// standLevel is the level of an interval with each end sure at 95 %.
const standLevel = 0.90

// Stands compares the runs under the settings s with those under the owner's, by the mixed model of
// the tuner. False: there are none of both.
func (r Returning) Stands(s tuning.Settings) (tuning.Outcome, bool) {
	h := r.history()
	h.grid()
	whole := h.whole()
	at := h.index(s)
	advice, err := whole.Next()
	i := slices.IndexFunc(advice.Standings, func(x recurring.Standing) bool { return x.Point == at })
	if err != nil || i < 0 || at == whole.Space.Own || r.Policy.Relearns(r.Own, s) || !h.comparable(s) {
		return tuning.Outcome{}, false
	}
	x := advice.Standings[i]
	reach := recurring.Beyond(advice.Degrees, 1) * x.SE
	out := tuning.Outcome{
		Verdict: tuning.Inconclusive, Reason: tuning.ReasonInconclusive, Measure: r.Policy.Measure().Objective, LogRatio: x.Ratio,
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

// ends counts the runs under the owner's hyperparameters that showed what they end with.
func (h *history) ends() int {
	return tuning.Count(h.Past, func(p tuning.PastRun) bool {
		epochs, _ := h.length(p)
		return p.Quality != nil && epochs > 0 && h.learning(p.Began) == h.guard.own && h.comparable(p.Began)
	})
}

// history is a Returning as points of a grid.
type history struct {
	Returning
	study  Study // of the knobs that are searched now
	guard  guard
	points []tuning.Settings // the owner's first
}

func (r Returning) history() *history {
	h := &history{Returning: r, study: Study{Policy: r.Policy, Own: r.Own, Space: r.Space}}
	h.watch()
	return h
}

// grid gathers the points that matter now: the owner's, those that were measured, and all that
// differ from one of these in one knob.
func (h *history) grid() {
	h.points = []tuning.Settings{h.study.point(h.Own)}
	for _, p := range h.Past {
		for _, t := range p.Trials {
			if h.comparable(t.Settings) {
				h.points = with(h.points, h.study.point(t.Settings))
			}
		}
	}
	for _, at := range slices.Clone(h.points) {
		for _, d := range h.study.Space {
			for _, v := range d.Values {
				h.points = with(h.points, at.With(d.Knob, v))
			}
		}
	}
}

func (h *history) index(s tuning.Settings) int {
	return slices.IndexFunc(h.points, h.study.point(s).Equal)
}

// comparable reports whether settings differ from the owner's only in searched knobs, their
// followers and memory. Followers alone, which the owner leaves to the program, make them other settings.
func (h *history) comparable(s tuning.Settings) bool {
	return !slices.ContainsFunc(h.Own.Diff(s), func(name string) bool {
		k, _ := h.Policy.Knob(name)
		if k.Follows != "" { // in runs of its owner it is the program's
			return !h.Own[name].IsSet() && s[k.Follows] == h.Own[k.Follows]
		}
		searched := slices.ContainsFunc(h.study.Space, func(d Dimension) bool { return d.Knob == name })
		d := Dimension{Knob: name, Own: k.Default}
		return name != tuning.Memory && !searched && d.of(h.Own) != d.of(s)
	})
}

func (h *history) whole() recurring.Whole {
	w := recurring.Whole{
		Space:    recurring.Space{Points: h.points},
		Goal:     recurring.Goal{MaxSlowdown: h.Policy.MaxSlowdown},
		Barred:   make([]bool, len(h.points)),
		Unproven: make([]bool, len(h.points)),
	}
	for _, d := range h.study.Space {
		w.Space.Knobs = append(w.Space.Knobs, recurring.Knob{Name: d.Knob, System: !d.Learns})
	}
	broken := slices.DeleteFunc(slices.Clone(h.points), func(p tuning.Settings) bool { return !h.guard.of(h.learning(p)).broken })
	for i, p := range h.points {
		settings := h.study.settings(p)
		_, permitted := h.Policy.Permits(h.Own, settings)
		at := h.guard.of(h.learning(p))
		spoiled := math.IsNaN(at.t) && slices.ContainsFunc(broken, func(b tuning.Settings) bool { return h.further(b, p) })
		w.Barred[i] = !permitted || at.t < 0 || spoiled || h.Unlikely != nil && h.Unlikely(settings)
		w.Unproven[i] = !at.kept
	}
	for _, s := range slices.Concat(h.Avoid, h.Underway) {
		if i := h.index(s); i > 0 && len(s) > 0 {
			w.Barred[i] = true
		}
	}
	source := h.source()
	w.Goal.Measure = h.measure(source)
	for _, p := range h.Past {
		run := h.run(p, w.Goal.Measure, source)
		epochs, missed := h.length(p)
		run.Epochs = epochs
		if len(run.Parts) > 0 && run.Weight > 0 {
			w.Runs = append(w.Runs, run)
		}
		failed := p.End == tuning.EndFailed || missed
		if i := h.index(p.Began); failed && len(p.Began) > 0 && h.comparable(p.Began) && i >= 0 {
			w.Failed = append(w.Failed, i)
		}
	}
	return w
}

// further reports whether s lies beyond b, seen from the owner's settings: what learns worse there learns no better
// further on.
func (h *history) further(b, s tuning.Settings) bool {
	out := false
	for _, d := range h.study.Space {
		own, from, to := d.of(h.Own).Float(), d.of(b).Float(), d.of(s).Float()
		switch {
		case !d.Learns || d.of(b).Equal(d.of(s)):
		case (from-own)*(to-from) > 0:
			out = true
		default:
			return false
		}
	}
	return out
}

func (h *history) run(p tuning.PastRun, m tuning.Measure, source string) recurring.Run {
	out := recurring.Run{Place: p.Machine, Weight: tuning.Aged(p.Age)}
	for _, t := range p.Trials {
		if t.Failed || !(t.Seconds > 0) || !(t.Weight() > 0) || !h.comparable(t.Settings) {
			continue
		}
		joules := math.NaN()
		if t.Joules != nil && t.Source == source {
			joules = float64(*t.Joules)
		}
		out.Parts = append(out.Parts, recurring.Part{
			Point: h.index(t.Settings), Epochs: t.Weight(), Cost: m.Spent(t.Seconds, joules, t.Settings),
		})
	}
	return out
}

// Energy is free where the joules of one run are unknown.
func (h *history) measure(source string) tuning.Measure {
	m := h.Policy.Measure()
	for _, p := range h.Past {
		for _, t := range p.Trials {
			if t.Joules == nil || t.Source != source || !m.Tariff.Charges(source) {
				return m.WithoutEnergy()
			}
		}
	}
	return m
}

// source is where most runs have their joules from. Computed ones are wrong on one job: they count
// only where the site says so, and only where no others are.
func (h *history) source() string {
	runs := map[string]int{}
	for _, p := range h.Past {
		for _, t := range p.Trials {
			switch {
			case t.Joules == nil:
			case t.Source != tuning.Modelled:
				runs[t.Source]++
			case h.Modelled:
				runs[t.Source] = 0
			}
		}
	}
	names := slices.Sorted(maps.Keys(runs))
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(runs[a], runs[b]) })
}

func (h *history) unmeasured() tuning.Reason {
	modelled := slices.ContainsFunc(h.Past, func(p tuning.PastRun) bool {
		return slices.ContainsFunc(p.Trials, func(t tuning.Trial) bool { return t.Source == tuning.Modelled })
	})
	switch {
	case len(h.Past) == 0:
		return tuning.ReasonFirstSeen
	case h.Policy.Measure().NeedsJoules() && modelled && !h.Modelled:
		return tuning.ReasonModelled
	}
	return tuning.ReasonOwnFirst
}

// Memory has no effect. The age is that of the newest run.
func (h *history) effect(s recurring.Standing) tuning.Effect {
	out := tuning.Effect{
		Settings: h.study.settings(h.points[s.Point]).WithoutMemory(), LogRatio: s.Ratio, SD: s.SE * math.Sqrt(float64(s.Runs)),
		LogTime: s.Seconds, Runs: s.Runs, Age: math.Inf(1),
	}
	for _, p := range h.Past {
		for _, t := range p.Trials {
			if h.comparable(t.Settings) && h.index(t.Settings) == s.Point {
				out.Age = min(out.Age, p.Age)
			}
		}
	}
	return out
}
