package search

import (
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// Study is what is known about one job when the next probe is asked for. Knobs that change
// what the job learns are not probed: the length of an epoch says nothing about them.
type Study struct {
	Policy tuning.Policy
	Own    tuning.Settings // as the owner submitted the job
	Space  []Dimension     // from Space
	Trials []tuning.Trial  // measured so far, that of the owner's settings included

	// Avoid are settings not to try although they have no trial: they were tried
	// and the job did not run, or they made jobs of its kind worse.
	Avoid []tuning.Settings
}

// Next returns the complete settings to try next and ReasonNone, or no settings
// and the reason: nothing to search (no-knobs, no-quality-guard, whole-runs-only), the
// owner's settings were not measured (profiling), the policy's number of probes was tried
// (budget-probes), or nothing is left that could be better (probes-done).
func (s Study) Next() (tuning.Settings, tuning.Reason) {
	dims, reason := s.dimensions()
	if reason != tuning.ReasonNone {
		return nil, reason
	}
	if _, ok := tuning.Reference(s.Trials); !ok {
		return nil, tuning.ReasonProfiling
	}
	order := s.order(dims)
	switch {
	case len(order) == 0:
		return nil, tuning.ReasonProbesDone
	case s.used(dims) >= s.Policy.Budget.Probes:
		return nil, tuning.ReasonBudgetProbes
	}
	return order[0], tuning.ReasonNone
}

// All are the settings that differ from the owner's in one knob, complete: those that may
// be tried, whether they were or not.
func (s Study) All() []tuning.Settings {
	dims, _ := s.dimensions()
	own := s.pointOf(dims, s.Own)
	var out []tuning.Settings
	for i, d := range dims {
		values := d.Values
		if d.Knob == tuning.Cores {
			k, _ := s.Policy.Knob(d.Knob)
			values = slices.DeleteFunc(k.Counts(), func(v tuning.Value) bool { return !s.Policy.Takes(k, v, s.Own) })
		}
		for _, v := range values {
			t := s.settings(dims, own.with(i, v))
			if _, ok := s.Policy.Permits(s.Own, t); ok && v != d.Own {
				out = append(out, t)
			}
		}
	}
	return out
}

// Best returns the best trial and its gain over the owner's settings. False: none
// but the owner's was measured, or the owner's was not.
func (s Study) Best() (Gain, bool) {
	reference, ok := tuning.Reference(s.Trials)
	if !ok {
		return Gain{}, false
	}
	return Better(s.Trials, reference, s.Policy)
}

// dimensions are those that epochs can judge.
func (s Study) dimensions() ([]Dimension, tuning.Reason) {
	dims := slices.DeleteFunc(slices.Clone(s.Space), func(d Dimension) bool { return d.Learns })
	switch {
	case len(s.Space) == 0:
		return nil, tuning.ReasonNoKnobs
	case len(dims) == 0 && s.Policy.Quality == nil:
		return nil, tuning.ReasonNoQualityGuard
	case len(dims) == 0:
		return nil, tuning.ReasonWholeRuns
	}
	return dims, tuning.ReasonNone
}

// point is one value per dimension.
type point []tuning.Value

func (s Study) pointOf(dims []Dimension, t tuning.Settings) point {
	p := make(point, len(dims))
	for i, d := range dims {
		p[i] = t[d.Knob]
		if !p[i].IsSet() {
			p[i] = d.Own
		}
	}
	return p
}

func (p point) with(i int, v tuning.Value) point {
	q := slices.Clone(p)
	q[i] = v
	return q
}

// settings are the owner's with the values of the point, where they differ.
func (s Study) settings(dims []Dimension, p point) tuning.Settings {
	out := s.Own.Clone()
	for i, d := range dims {
		if p[i] != d.Own {
			out[d.Knob] = p[i]
		}
	}
	return s.Policy.Complete(out)
}

// tried lists the points that are not to be tried again, the owner's first.
func (s Study) tried(dims []Dimension) []point {
	out := []point{s.pointOf(dims, s.Own)}
	note := func(t tuning.Settings) {
		p := s.pointOf(dims, t)
		if !slices.ContainsFunc(out, func(q point) bool { return slices.Equal(p, q) }) {
			out = append(out, p)
		}
	}
	for _, t := range s.Trials {
		note(t.Settings)
	}
	for _, a := range s.Avoid {
		note(a)
	}
	return out
}

// used counts the settings other than the owner's that were tried in this job.
func (s Study) used(dims []Dimension) int {
	s.Avoid = nil
	return len(s.tried(dims)) - 1
}

// base is the point to go on from: the best trial, where its gain is more than
// the luck of having tried several, else the owner's own.
func (s Study) base(dims []Dimension) point {
	own := s.pointOf(dims, s.Own)
	best, ok := s.Best()
	if !ok || best.Expected >= 0 {
		return own
	}
	p := s.pointOf(dims, best.Trial.Settings)
	for i, d := range dims {
		if !slices.Contains(d.Values, p[i]) && p[i] != d.Own {
			return own
		}
	}
	return p
}

// order lists what is worth trying from the base, best first: for each knob in
// turn the values that no trial had yet, then again the values that were only
// tried together with other settings than the base's and had not clearly lost
// there: knobs may act on each other, but rarely turn a clear loss round.
func (s Study) order(dims []Dimension) []tuning.Settings {
	tried := s.tried(dims)
	base := s.base(dims)
	var fresh, again []tuning.Settings
	for i, d := range dims {
		for _, v := range promising(d, base[i]) {
			p := base.with(i, v)
			if slices.ContainsFunc(tried, func(q point) bool { return slices.Equal(p, q) }) || s.shadowed(dims, base, i, v) {
				continue
			}
			t := s.settings(dims, p)
			if _, ok := s.Policy.Permits(s.Own, t); !ok {
				continue
			}
			switch {
			case !slices.ContainsFunc(tried, func(q point) bool { return q[i] == v }):
				fresh = append(fresh, t)
			case !s.lost(dims, base, i, v):
				again = append(again, t)
			}
		}
	}
	return append(fresh, again...)
}

// near is within which share of the present value another number is so much like it that
// the difference drowns in the noise of an epoch.
const near = 0.1

// promising orders the other values of a knob. System knobs begin with the
// largest: too few cores make an epoch long, so that the costly trials come
// last, or never. Other knobs go outwards from the present value, larger ones first.
// Numbers that are near to
// the present one come behind all others: a job with many cores would spend its probes
// on steps of one.
func promising(d Dimension, at tuning.Value) []tuning.Value {
	var out, little []tuning.Value
	for _, v := range outwards(d, at) {
		if v.IsNumber() && at.IsNumber() && math.Abs(v.Float()-at.Float()) < near*math.Abs(at.Float()) {
			little = append(little, v)
			continue
		}
		out = append(out, v)
	}
	return append(out, little...)
}

func outwards(d Dimension, at tuning.Value) []tuning.Value {
	var out []tuning.Value
	if tuning.IsSystem(d.Knob) {
		for _, v := range slices.Backward(d.Values) {
			if v != at {
				out = append(out, v)
			}
		}
		return out
	}
	i := slices.Index(d.Values, at)
	for step := 1; step <= len(d.Values); step++ {
		if j := i + step; j < len(d.Values) {
			out = append(out, d.Values[j])
		}
		if j := i - step; i >= 0 && j >= 0 {
			out = append(out, d.Values[j])
		}
	}
	return out
}

// shadowed tells whether a value lies beyond one that is already worse than the
// base: seconds and joules as a function of one knob are taken to have one
// valley, so further on is worse still.
func (s Study) shadowed(dims []Dimension, base point, i int, v tuning.Value) bool {
	from := base[i]
	if !v.IsNumber() || !from.IsNumber() {
		return false
	}
	reference, ok := tuning.Reference(s.Trials)
	if !ok {
		return false
	}
	at, ok := s.trial(dims, base)
	if !ok {
		return false
	}
	sd, _ := spread(s.Trials)
	for _, t := range s.Trials {
		u := s.pointOf(dims, t.Settings)
		if t.Failed || !u[i].IsNumber() || !slices.Equal(base.with(i, u[i]), u) || !between(from, u[i], v) {
			continue
		}
		if !Usable(t, reference, s.Policy) {
			return true
		}
		if worse, ok := t.LogRatio(at, s.Policy.Measure()); ok && worse > standardError(t, at, s.Policy, sd) {
			return true
		}
	}
	return false
}

// clearLoss is how many standard errors behind counts as clear.
const clearLoss = 3

// lost tells whether the value was clearly worse than the base's elsewhere, with
// all other knobs equal.
func (s Study) lost(dims []Dimension, base point, i int, v tuning.Value) bool {
	sd, _ := spread(s.Trials)
	for _, t := range s.Trials {
		p := s.pointOf(dims, t.Settings)
		if p[i] != v {
			continue
		}
		other, ok := s.trial(dims, p.with(i, base[i]))
		if !ok {
			continue
		}
		worse, ok := t.LogRatio(other, s.Policy.Measure())
		if ok && worse > clearLoss*standardError(t, other, s.Policy, sd) {
			return true
		}
	}
	return false
}

func (s Study) trial(dims []Dimension, p point) (tuning.Trial, bool) {
	for _, t := range s.Trials {
		if slices.Equal(s.pointOf(dims, t.Settings), p) {
			return t, true
		}
	}
	return tuning.Trial{}, false
}

// between tells whether u lies strictly between a and b.
func between(a, u, b tuning.Value) bool {
	lo, hi := min(a.Float(), b.Float()), max(a.Float(), b.Float())
	return lo < u.Float() && u.Float() < hi
}
