package search

import (
	"cmp"
	"math"
	"slices"

	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// Dimension is one knob of a space and the values it may take.
type Dimension struct {
	Knob   string         `json:"knob"`
	Learns bool           `json:"learns"` // changes what the job learns, see tuning.Policy.Learns
	Values []tuning.Value `json:"values"` // numbers ascending, then words as written; the own value included
	Own    tuning.Value   `json:"own"`    // not set: as the job file has it
}

// Space lists the knobs that can be searched in their order: cores, threads, then the others as
// written. A range is cut into at most n values. A knob that own does not name has its default.
func Space(p tuning.Policy, own tuning.Settings, n int) []Dimension {
	var out []Dimension
	for _, k := range p.Knobs {
		if k.Follows != "" || !tuning.Settable(k.Name) {
			continue
		}
		d := Dimension{Knob: k.Name, Learns: p.Learns(k.Name), Own: k.Default}
		d.Own = d.of(own)
		for _, v := range append(k.Candidates(n), d.Own) {
			fits := v == d.Own || p.Takes(k, v, own)
			if v.IsSet() && fits && !slices.Contains(d.Values, v) {
				d.Values = append(d.Values, v)
			}
		}
		slices.SortStableFunc(d.Values, func(a, b tuning.Value) int {
			switch {
			case a.IsNumber() == b.IsNumber():
				return cmp.Compare(a.Float(), b.Float()) // of words 0
			case a.IsNumber():
				return -1
			}
			return 1
		})
		if slices.ContainsFunc(d.Values, func(v tuning.Value) bool { return v != d.Own }) {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b Dimension) int { return recurring.CoresFirst(a.knob(), b.knob()) })
	return out
}

func (d Dimension) knob() recurring.Knob {
	return recurring.Knob{Name: d.Knob, System: tuning.IsSystem(d.Knob)}
}

func (d Dimension) of(s tuning.Settings) tuning.Value {
	if v := s[d.Knob]; v.IsSet() {
		return v
	}
	return d.Own
}

// Study is what is known about one job when the next probe is asked for.
type Study struct {
	Policy tuning.Policy
	Own    tuning.Settings // as the owner submitted the job
	Space  []Dimension     // from Space
	Trials []tuning.Trial  // measured so far, that of the owner's settings included

	// Avoid are settings not to try although they have no trial: they were tried
	// and the job did not run, or they made jobs of its kind worse.
	Avoid []tuning.Settings
}

// Next returns the complete settings to try next, or the reason why there are none.
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
	case len(s.tried(nil))-1 >= s.Policy.Budget.Probes:
		return nil, tuning.ReasonBudgetProbes
	}
	return order[0], tuning.ReasonNone
}

// All are the settings that differ from the owner's in one knob, tried or not.
func (s Study) All() []tuning.Settings {
	s, _ = s.epochal()
	own := s.point(s.Own)
	var out []tuning.Settings
	if t := s.Policy.Complete(s.Own); len(t) > len(s.Own) { // what the owner leaves to the program follows as well
		if _, ok := s.Policy.Permits(s.Own, t); ok {
			out = append(out, t)
		}
	}
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

// Best returns the best trial but the owner's. False: there is none, or the owner's was not
// measured.
func (s Study) Best() (Gain, bool) {
	reference, ok := tuning.Reference(s.Trials)
	if !ok {
		return Gain{}, false
	}
	return Better(s.Trials, reference, s.Policy)
}

// Propose returns what Next, All and Best return, as one proposal.
func (s Study) Propose() tuning.Proposal {
	out := tuning.Proposal{Candidates: s.All()}
	out.Next, out.NextReason = s.Next()
	if gain, ok := s.Best(); ok {
		out.Best, out.BestGain, out.BestError = &gain.Trial, gain.Expected, gain.SE
	}
	return out
}

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

func (s Study) point(t tuning.Settings) tuning.Settings {
	p := tuning.Settings{}
	for _, d := range s.Space {
		p[d.Knob] = d.of(t)
	}
	return p
}

func (s Study) settings(p tuning.Settings) tuning.Settings {
	out := tuning.Settings{}
	for _, d := range s.Space {
		if p[d.Knob] != d.Own {
			out[d.Knob] = p[d.Knob]
		}
	}
	own := s.Own
	if len(s.Policy.Complete(own)) > len(own) { // what the owner leaves to the program goes on to follow where that proved better
		if best, ok := s.Best(); ok && best.Expected < 0 {
			own = own.Merge(best.Trial.Settings.Only(s.Policy.Follows))
		}
	}
	return s.Policy.Over(own, out)
}

func (s Study) tried(others []tuning.Settings) []tuning.Settings {
	out := []tuning.Settings{s.point(s.Own)}
	for _, t := range s.Trials {
		out = with(out, s.point(t.Settings))
	}
	for _, o := range others {
		out = with(out, s.point(o))
	}
	return out
}

func with(points []tuning.Settings, p tuning.Settings) []tuning.Settings {
	if slices.ContainsFunc(points, p.Equal) {
		return points
	}
	return append(points, p)
}

// base is the best trial, where its gain is more than luck, else the owner's settings.
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

// order lists what is worth trying from the base: for each knob in turn the values that no trial
// had yet, then those that were only tried with other settings and had not clearly lost there:
// knobs may act on each other, but rarely turn a clear loss round.
func (s Study) order() []tuning.Settings {
	tried := s.tried(s.Avoid)
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

// near is the share within which the difference of two numbers drowns in the noise of an epoch.
const near = 0.1

// promising orders the other values of a knob. System knobs begin with the largest: too few cores
// make an epoch long. Other knobs go outwards from the present value. Near numbers come last: a job
// with many cores would spend its probes on steps of one.
func promising(d Dimension, at tuning.Value) []tuning.Value {
	rank := func(v tuning.Value) int {
		steps := 0
		if !tuning.IsSystem(d.Knob) {
			steps = slices.Index(d.Values, v) - slices.Index(d.Values, at)
		}
		if v.IsNumber() && at.IsNumber() && math.Abs(v.Float()-at.Float()) < near*math.Abs(at.Float()) {
			return len(d.Values) + 1 + max(steps, -steps)
		}
		return max(steps, -steps)
	}
	out := slices.DeleteFunc(slices.Clone(d.Values), func(v tuning.Value) bool { return v == at })
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b tuning.Value) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

func (s Study) worse(t, other tuning.Trial, errors float64) bool {
	by, ok := t.LogRatio(other, s.Policy.Measure())
	return ok && by > errors*standardError(t, other, s.Policy, tuning.EpochSD(s.Trials...))
}

// shadowed reports whether a value lies beyond one that is already worse: seconds and joules along
// one knob are taken to have one valley.
func (s Study) shadowed(base tuning.Settings, knob string, v tuning.Value) bool {
	from := base[knob]
	reference, _ := tuning.Reference(s.Trials)
	at, ok := s.trial(base)
	if !ok || !v.IsNumber() || !from.IsNumber() {
		return false
	}
	low, high := min(from.Float(), v.Float()), max(from.Float(), v.Float())
	return slices.ContainsFunc(s.Trials, func(t tuning.Trial) bool {
		p := s.point(t.Settings)
		u := p[knob]
		between := u.IsNumber() && low < u.Float() && u.Float() < high
		if t.Failed || !between || !base.With(knob, u).Equal(p) {
			return false
		}
		return Refusal(t, reference, s.Policy) != tuning.ReasonNone || s.worse(t, at, 1)
	})
}

const clearLoss = 3

// lost reports whether the value was clearly worse than the base's with all other knobs equal.
func (s Study) lost(base tuning.Settings, knob string, v tuning.Value) bool {
	return slices.ContainsFunc(s.Trials, func(t tuning.Trial) bool {
		p := s.point(t.Settings)
		other, ok := s.trial(p.With(knob, base[knob]))
		return ok && p[knob] == v && s.worse(t, other, clearLoss)
	})
}

func (s Study) trial(p tuning.Settings) (tuning.Trial, bool) {
	return tuning.First(s.Trials, func(t tuning.Trial) bool { return s.point(t.Settings).Equal(p) })
}
