package verify

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

type measure struct {
	tuning.Measure
	source    string // of the joules that count; empty: none do
	uncharged bool   // the cost of tuning itself is left out
}

// of returns the measure of one epoch; false: it was not measured.
func (m measure) of(e tuning.Epoch) (float64, bool) {
	v := m.Log(m.spent(e))
	return v, !math.IsInf(v, 0)
}

func (m measure) spent(e tuning.Epoch) tuning.Spent {
	joules := math.NaN()
	if e.Joules != nil && m.source != "" && e.Source == m.source {
		joules = float64(*e.Joules)
	}
	return m.Spent(e.Seconds(), joules, e.Settings)
}

func (m measure) logs(epochs []tuning.Epoch) []float64 {
	var out []float64
	for _, e := range epochs {
		if v, ok := m.of(e); ok && e.Counts() {
			out = append(out, v)
		}
	}
	return out
}

// ratios returns the log ratios of a pair at the epochs that both sides did and
// neither drops, with what tuning cost charged to the tuned side.
func (m measure) ratios(p Pair) []float64 {
	chargeKnown := !p.JoulesUnknown && (p.ChargeSource == "" || p.ChargeSource == m.source)
	if m.source != "" && !m.uncharged && !chargeKnown {
		return nil
	}
	var out []float64
	var spent tuning.Spent
	for t, u := range matching(p) {
		if !t.Counts() || !u.Counts() {
			continue
		}
		vt, okT := m.of(t)
		vu, okU := m.of(u)
		if !okT || !okU {
			continue
		}
		out = append(out, vt-vu)
		spent = spent.Plus(m.spent(t))
	}
	if m.uncharged {
		return out
	}
	joules, seconds := m.Weights()
	charge := seconds*charged(p.ChargeSeconds, spent.Seconds) + joules*charged(float64(p.ChargeJoules), spent.Joules)
	if m.Priced() {
		charge = charged(p.ChargeHeld+m.Tariff.KWh*float64(p.ChargeJoules)/3.6e6, spent.Price)
	}
	for i := range out {
		out[i] += charge
	}
	return out
}

// charged is the log of how much more was spent with the charge than without.
func charged(extra, spent float64) float64 {
	if extra <= 0 || !(spent > 0) {
		return 0
	}
	return math.Log1p(extra / spent)
}

// matching yields the epochs that both jobs did, in the order of their numbers; of an
// epoch that was done in several attempts, the last.
func matching(p Pair) iter.Seq2[tuning.Epoch, tuning.Epoch] {
	tuned, untuned := byNumber(p.Tuned), byNumber(p.Untuned)
	again := func(list []tuning.Epoch, i int) bool { return i+1 < len(list) && list[i+1].Number == list[i].Number }
	return func(yield func(tuned, untuned tuning.Epoch) bool) {
		for i, j := 0, 0; i < len(tuned) && j < len(untuned); {
			switch t, u := tuned[i], untuned[j]; {
			case t.Number < u.Number || again(tuned, i):
				i++
			case t.Number > u.Number || again(untuned, j):
				j++
			case !yield(t, u):
				return
			default:
				i++
				j++
			}
		}
	}
}

// byNumber sorts epochs by their numbers and attempts.
func byNumber(epochs []tuning.Epoch) []tuning.Epoch {
	order := func(a, b tuning.Epoch) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Attempt, b.Attempt))
	}
	if slices.IsSortedFunc(epochs, order) {
		return epochs
	}
	return slices.SortedStableFunc(slices.Values(epochs), order)
}

// source picks the source of joules that allows most comparisons; any measured
// one goes before modelled joules. Empty: no source is on both sides.
func (in Input) source() string {
	best, most := "", 0
	for _, s := range in.sources() {
		n := in.comparable(measure{Measure: tuning.Measure{Objective: tuning.Energy}, source: s})
		switch {
		case n == 0:
		case best == "",
			tuning.IsModelled(best),
			!tuning.IsModelled(s) && n > most:
			best, most = s, n
		}
	}
	return best
}

// comparable counts the epochs that a measure can compare.
func (in Input) comparable(m measure) int {
	if len(in.Pairs) == 0 {
		return min(len(m.logs(in.Before)), len(m.logs(in.After)))
	}
	return tuning.Sum(in.Pairs, func(p Pair) int { return len(m.ratios(p)) })
}

func (in Input) sources() []string {
	var out []string
	for _, side := range in.sides() {
		for _, e := range side {
			if e.Joules != nil && e.Source != "" && !slices.Contains(out, e.Source) {
				out = append(out, e.Source)
			}
		}
	}
	slices.Sort(out)
	return out
}

// estimate compares by one measure, with an interval that errs at most alpha of the time.
// A slow attempt is taken to burn more joules in proportion.
func (in Input) estimate(m measure, alpha float64) estimate {
	if len(in.Pairs) == 0 {
		return twoSamples(m.logs(in.Before), m.logs(in.After), m.Degree()*AttemptSD, alpha)
	}
	var pairs [][]float64
	for _, p := range in.Pairs {
		if r := m.ratios(p); len(r) > 0 {
			pairs = append(pairs, r)
		}
	}
	return symmetricPairs(pairs, alpha)
}

// why says what is missing if nothing could be compared.
func (in Input) why() tuning.Reason {
	if slices.ContainsFunc(slices.Concat(in.sides()...), func(e tuning.Epoch) bool { return e.Polluted && !e.Warmup }) {
		return tuning.ReasonPolluted
	}
	return tuning.ReasonNoSamples
}
