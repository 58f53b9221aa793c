package verify

import (
	"math"
	"time"

	"pitchpipe/controller/tuning"
	mind "pitchpipe/controller/verify"
)

// measured is one epoch, or a whole run that counts as one.
type measured struct {
	seconds float64
	joules  float64 // 0: not measured
}

// replay is one story without an effect: of a job, or of pairs of jobs in the order in
// which they ended.
type replay struct {
	before, after []measured
	pairs         []couple
}

type couple struct{ tuned, untuned []measured }

// source is that of all joules here.
const source = tuning.Replayed

// verdicts is what became of one replay.
type verdicts struct {
	looks        int
	wrong        bool // at any look
	covered      bool // at every look
	last         bool // at the last
	first        tuning.Verdict
	right        bool // the first verdict
	toFirst      int
	inconclusive bool // at the last look
}

// judge asks for a verdict at every look.
func (in Input) judge(n null, r replay, effect float64) verdicts {
	truth := math.Log1p(-effect)
	v := verdicts{covered: true, first: tuning.Inconclusive}
	terms := mind.Input{Measure: tuning.Measure{Objective: n.objective}, Level: 1 - in.Level, Candidates: in.Candidates}
	look := func(o tuning.Outcome) {
		v.looks++
		wrong := isWrong(o.Verdict, effect)
		v.wrong = v.wrong || wrong
		v.last = o.Low <= truth && truth <= o.High
		v.covered = v.covered && v.last
		v.inconclusive = o.Verdict == tuning.Inconclusive
		if v.first == tuning.Inconclusive && !v.inconclusive {
			v.first, v.right, v.toFirst = o.Verdict, !wrong, v.looks
		}
	}
	if n.comparison == Job {
		terms.Before = epochsOf(r.before, 1, 1, 0)
		after := epochsOf(r.after, 1+len(r.before), 2, effect)
		for k := range after {
			terms.After = after[:k+1]
			look(mind.Compare(terms))
		}
		return v
	}
	pairs := make([]mind.Pair, len(r.pairs))
	for i, p := range r.pairs {
		pairs[i] = mind.Pair{Tuned: epochsOf(p.tuned, 1, 1, effect), Untuned: epochsOf(p.untuned, 1, 1, 0)}
	}
	for k := range pairs {
		terms.Pairs = pairs[:k+1]
		look(mind.Compare(terms))
	}
	return v
}

// isWrong tells whether a verdict claims what is not so.
func isWrong(v tuning.Verdict, effect float64) bool {
	switch v {
	case tuning.Improved:
		return effect == 0
	case tuning.Regressed:
		return true
	case tuning.Neutral:
		return -math.Log1p(-effect) > math.Log1p(mind.Margin)
	default:
		return false
	}
}

// epochsOf makes epochs that follow each other, each less by the effect.
func epochsOf(list []measured, number, attempt int, effect float64) []tuning.Epoch {
	start := time.Unix(0, 0).UTC()
	out := make([]tuning.Epoch, len(list))
	for i, m := range list {
		end := start.Add(time.Duration((1 - effect) * m.seconds * float64(time.Second)))
		e := tuning.Epoch{Number: number + i, Attempt: attempt, Start: start, End: end}
		if m.joules > 0 {
			e.Joules, e.Source = new(tuning.Joules((1-effect)*m.joules)), source
		}
		out[i], start = e, end
	}
	return out
}
