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
	s, reason := s.epochal()
	if reason != tuning.ReasonNone {
		return nil, reason
	}
	if _, ok := tuning.Reference(s.Trials); !ok {
		return nil, tuning.ReasonProfiling
	}
	order := s.order()
	switch {
	case len(order) == 0:
		return nil, tuning.ReasonProbesDone
	case s.used() >= s.Policy.Budget.Probes:
		return nil, tuning.ReasonBudgetProbes
	}
	return order[0], tuning.ReasonNone
}

// All are the settings that differ from the owner's in one knob, complete: those that may
// be tried, whether they were or not.
func (s Study) All() []tuning.Settings {
	s, _ = s.epochal()
	own := s.point(s.Own)
	var out []tuning.Settings
	for _, d := range s.Space {
		values := d.Values
		if d.Knob == tuning.Cores {
			k, _ := s.Policy.Knob(d.Knob)
			values = slices.DeleteFunc(k.Counts(), func(v tuning.Value) bool { return !s.Policy.Takes(k, v, s.Own) })
		}
		for _, v := range values {
			t := s.settings(own.With(d.Knob, v))
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

// epochal is the study of the knobs that epochs can judge, or why there are none.
func (s Study) epochal() (Study, tuning.Reason) {
	all := s.Space
	s.Space = slices.DeleteFunc(slices.Clone(all), func(d Dimension) bool { return d.Learns })
	switch {
	case len(all) == 0:
		return s, tuning.ReasonNoKnobs
	case len(s.Space) == 0 && s.Policy.Quality == nil:
		return s, tuning.ReasonNoQualityGuard
	case len(s.Space) == 0:
		return s, tuning.ReasonWholeRuns
	}
	return s, tuning.ReasonNone
}

// point is what settings say of the knobs that are searched, one value for each.
func (s Study) point(t tuning.Settings) tuning.Settings {
	p := tuning.Settings{}
	for _, d := range s.Space {
		p[d.Knob] = t[d.Knob]
		if !t[d.Knob].IsSet() {
			p[d.Knob] = d.Own
		}
	}
	return p
}

// settings are the owner's with the values of the point, where they differ.
func (s Study) settings(p tuning.Settings) tuning.Settings {
	out := s.Own.Clone()
	for _, d := range s.Space {
		if p[d.Knob] != d.Own {
			out[d.Knob] = p[d.Knob]
		}
	}
	return s.Policy.Complete(out)
}

// tried lists the points that are not to be tried again, the owner's first.
func (s Study) tried() []tuning.Settings {
	out := []tuning.Settings{s.point(s.Own)}
	note := func(t tuning.Settings) {
		if p := s.point(t); !slices.ContainsFunc(out, p.Equal) {
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
func (s Study) used() int {
	s.Avoid = nil
	return len(s.tried()) - 1
}

// base is the point to go on from: the best trial, where its gain is more than
// the luck of having tried several, else the owner's own.
func (s Study) base() tuning.Settings {
	own := s.point(s.Own)
	best, ok := s.Best()
	if !ok || best.Expected >= 0 {
		return own
	}
	p := s.point(best.Trial.Settings)
	for _, d := range s.Space {
		if v := p[d.Knob]; !slices.Contains(d.Values, v) && v != d.Own {
			return own
		}
	}
	return p
}

// order lists what is worth trying from the base, best first: for each knob in
// turn the values that no trial had yet, then again the values that were only
// tried together with other settings than the base's and had not clearly lost
// there: knobs may act on each other, but rarely turn a clear loss round.
func (s Study) order() []tuning.Settings {
	tried := s.tried()
	base := s.base()
	var fresh, again []tuning.Settings
	for _, d := range s.Space {
		for _, v := range promising(d, base[d.Knob]) {
			p := base.With(d.Knob, v)
			if slices.ContainsFunc(tried, p.Equal) || s.shadowed(base, d.Knob, v) {
				continue
			}
			t := s.settings(p)
			if _, ok := s.Policy.Permits(s.Own, t); !ok {
				continue
			}
			switch {
			case !slices.ContainsFunc(tried, func(q tuning.Settings) bool { return q[d.Knob] == v }):
				fresh = append(fresh, t)
			case !s.lost(base, d.Knob, v):
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

// shadowed reports whether a value lies beyond one that is already worse than the
// base: seconds and joules as a function of one knob are taken to have one
// valley, so further on is worse still.
func (s Study) shadowed(base tuning.Settings, knob string, v tuning.Value) bool {
	from := base[knob]
	if !v.IsNumber() || !from.IsNumber() {
		return false
	}
	reference, ok := tuning.Reference(s.Trials)
	if !ok {
		return false
	}
	at, ok := s.trial(base)
	if !ok {
		return false
	}
	sd, _ := spread(s.Trials)
	for _, t := range s.Trials {
		p := s.point(t.Settings)
		u := p[knob]
		if t.Failed || !u.IsNumber() || !base.With(knob, u).Equal(p) || !between(from, u, v) {
			continue
		}
		if Refusal(t, reference, s.Policy) != tuning.ReasonNone {
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

// lost reports whether the value was clearly worse than the base's elsewhere, with
// all other knobs equal.
func (s Study) lost(base tuning.Settings, knob string, v tuning.Value) bool {
	sd, _ := spread(s.Trials)
	for _, t := range s.Trials {
		p := s.point(t.Settings)
		if p[knob] != v {
			continue
		}
		other, ok := s.trial(p.With(knob, base[knob]))
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

func (s Study) trial(p tuning.Settings) (tuning.Trial, bool) {
	i := slices.IndexFunc(s.Trials, func(t tuning.Trial) bool { return s.point(t.Settings).Equal(p) })
	if i < 0 {
		return tuning.Trial{}, false
	}
	return s.Trials[i], true
}

// between reports whether u lies strictly between a and b.
func between(a, u, b tuning.Value) bool {
	lo, hi := min(a.Float(), b.Float()), max(a.Float(), b.Float())
	return lo < u.Float() && u.Float() < hi
}
