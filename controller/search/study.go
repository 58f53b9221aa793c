package search

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/search/recur"
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
		p[d.Knob] = d.of(t)
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
	for _, t := range s.Trials {
		out = with(out, s.point(t.Settings))
	}
	for _, a := range s.Avoid {
		out = with(out, s.point(a))
	}
	return out
}

// with adds a point to those that it is none of.
func with(points []tuning.Settings, p tuning.Settings) []tuning.Settings {
	if slices.ContainsFunc(points, p.Equal) {
		return points
	}
	return append(points, p)
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

// promising orders the other values of a knob. System knobs begin with the largest: too few
// cores make an epoch long, so that the costly trials come last, or never. Other knobs go
// outwards from the present value, larger ones first. Numbers near to the present one come
// last: a job with many cores would spend its probes on steps of one.
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

// worse reports whether a trial is behind another by more than so many standard errors.
func (s Study) worse(t, other tuning.Trial, errors float64) bool {
	sd, _ := spread(s.Trials)
	by, ok := t.LogRatio(other, s.Policy.Measure())
	return ok && by > errors*standardError(t, other, s.Policy, sd)
}

// shadowed reports whether a value lies beyond one that is already worse than the
// base: seconds and joules as a function of one knob are taken to have one
// valley, so further on is worse still.
func (s Study) shadowed(base tuning.Settings, knob string, v tuning.Value) bool {
	from := base[knob]
	reference, _ := tuning.Reference(s.Trials)
	at, ok := s.trial(base)
	if !ok || !v.IsNumber() || !from.IsNumber() {
		return false
	}
	return slices.ContainsFunc(s.Trials, func(t tuning.Trial) bool {
		p := s.point(t.Settings)
		u := p[knob]
		if t.Failed || !u.IsNumber() || !base.With(knob, u).Equal(p) || !between(from, u, v) {
			return false
		}
		return Refusal(t, reference, s.Policy) != tuning.ReasonNone || s.worse(t, at, 1)
	})
}

// clearLoss is how many standard errors behind counts as clear.
const clearLoss = 3

// lost reports whether the value was clearly worse than the base's elsewhere, with
// all other knobs equal.
func (s Study) lost(base tuning.Settings, knob string, v tuning.Value) bool {
	return slices.ContainsFunc(s.Trials, func(t tuning.Trial) bool {
		p := s.point(t.Settings)
		other, ok := s.trial(p.With(knob, base[knob]))
		return ok && p[knob] == v && s.worse(t, other, clearLoss)
	})
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

// Noise of one epoch. Trials are short, so their own spread is shared among them
// and joined with what is usual, which counts as much as priorDegrees epochs.
const (
	priorSD      = 0.05
	priorDegrees = 4
)

// spread is that of ln(seconds) of an epoch over all trials.
func spread(trials []tuning.Trial) (sd, degrees float64) {
	out := recur.Usual(priorSD, priorDegrees)
	for _, t := range trials {
		if t.Epochs > 1 && !t.Failed && t.SDLog >= 0 {
			out.AddVariance(t.SDLog*t.SDLog, float64(t.Epochs-1))
		}
	}
	return math.Sqrt(out.Variance()), out.Degrees
}

// standardError is that of the score of a trial against the reference. Joules
// are taken to vary as the seconds do, and together with them.
func standardError(trial, reference tuning.Trial, p tuning.Policy, sd float64) float64 {
	return p.Measure().Degree() * trial.RatioError(reference, sd)
}

// Gain is what the best trial brings over the reference.
type Gain struct {
	Trial tuning.Trial `json:"trial"`

	// LogRatio is the score as measured. It flatters: the best of several was
	// chosen for its luck too.
	LogRatio float64 `json:"log_ratio"`

	// SE is the standard error of LogRatio.
	SE float64 `json:"se"`

	// Candidates is among how many trials the best was chosen.
	Candidates int `json:"candidates"`

	// Expected is LogRatio without the luck: raised by what the best of that many
	// trials without any effect would show, and never above 0.
	Expected float64 `json:"expected"`

	// Clear reports whether the gain is beyond the noise: with the error of 5 %
	// shared among the candidates (Bonferroni), LogRatio lies below 0.
	Clear bool `json:"clear"`
}

// Better picks, of the trials that the policy allows to be used and that learned what the
// reference did, the one with the lowest score. False: there is none but the reference. That the gain is
// above 0 or clear of noise is not implied; the caller looks at Gain.
func Better(trials []tuning.Trial, reference tuning.Trial, p tuning.Policy) (Gain, bool) {
	sd, degrees := spread(trials)
	var best Gain
	for _, t := range trials {
		v, ok := t.LogRatio(reference, p.Measure())
		if !ok || t.Reference || t.Epochs < 1 || Refusal(t, reference, p) != tuning.ReasonNone || p.Relearns(reference.Settings, t.Settings) {
			continue
		}
		best.Candidates++
		if best.Candidates == 1 || v < best.LogRatio || v == best.LogRatio && t.Settings.Key() < best.Trial.Settings.Key() {
			best.Trial, best.LogRatio = t, v
		}
	}
	if best.Candidates == 0 {
		return Gain{}, false
	}
	best.SE = standardError(best.Trial, reference, p, sd)
	best.Expected = min(best.LogRatio+luck(best.Candidates)*best.SE, 0)
	best.Clear = best.LogRatio < -recur.Beyond(degrees, best.Candidates)*best.SE
	return best, true
}

// luck is the expected largest of m standard normal values, by Blom's formula
// Φ⁻¹((m-3/8)/(m+1/4)) (Blom, "Statistical Estimates and Transformed
// Beta-Variables", 1958); 0 for a single one.
func luck(m int) float64 {
	return distuv.UnitNormal.Quantile((float64(m) - 0.375) / (float64(m) + 0.25))
}

// likely is how many standard errors beyond the owner's slowdown limit a trial has to be for
// it to be so in nine of ten cases.
const likely = 1.2816

// Refusal says why the owner would not accept a trial, or ReasonNone: it did not fail, is not
// likely to be slower than allowed, changes what the job learns only under a quality guard, and
// its quality, where both are known, is not worse than the guard allows. Two
// trials of one job are at different epochs, where quality has usually risen, so
// that this catches only what spoils the result at once; verify compares at
// equal epochs.
func Refusal(trial, reference tuning.Trial, p tuning.Policy) tuning.Reason {
	if trial.Failed || !(trial.Seconds > 0) || !(reference.Seconds > 0) {
		return tuning.ReasonFailed
	}
	slower := math.Log(trial.Seconds / reference.Seconds)
	if p.MaxSlowdown > 0 && slower-likely*trial.RatioError(reference, tuning.EpochSD(trial, reference)) > math.Log(p.MaxSlowdown) {
		return tuning.ReasonSlower
	}
	if p.Quality == nil && p.Relearns(reference.Settings, trial.Settings) {
		return tuning.ReasonNoQualityGuard
	}
	if p.Quality == nil || trial.Quality == nil || reference.Quality == nil {
		return tuning.ReasonNone
	}
	worse := *reference.Quality - *trial.Quality
	if p.Quality.Direction == "min" {
		worse = -worse
	}
	if worse > p.Quality.MaxLoss*math.Abs(*reference.Quality) {
		return tuning.ReasonQualityLost
	}
	return tuning.ReasonNone
}
