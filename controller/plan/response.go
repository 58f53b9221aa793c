package plan

import (
	"cmp"
	"math"
	"slices"

	"pitchpipe/controller/respond"
	"pitchpipe/controller/tuning"
)

const (
	sure       = 1.6449 // standard deviations from the mean to a one-sided 95 % bound
	confidence = 0.95
	optimism   = 0.5 // share of the rest that the best setting of any job may save
)

func answer(s tuning.State) *respond.Model {
	f := respond.Facts{Policy: s.Policy, Own: s.Own, Usage: respond.UsageOf(s.Profile, s.Own), Trials: s.Trials, Kind: slices.Clone(s.KindEffects), Others: s.Carried}
	target := func(e tuning.Effect) tuning.Settings { return s.Policy.Over(s.Own, e.Settings) }
	if s.Returns != nil { // between runs, where nothing was seen within
		f.Kind = append(f.Kind, slices.DeleteFunc(slices.Clone(s.Returns.Seen), func(e tuning.Effect) bool {
			return slices.ContainsFunc(s.KindEffects, func(k tuning.Effect) bool { return target(k).EqualButMemory(target(e)) })
		})...)
	}
	if s.Class != nil && s.Class.Known() {
		f.Class = supported(s.ClassEffects)
	}
	return respond.New(f)
}

func (s view) baseline() (tuning.Settings, float64) {
	if best, ok := s.winner(); ok {
		return best, s.BestGain
	}
	return s.Own, 0
}

// An untouched job must save enough for a disturbance.
func (s view) chances(target tuning.Settings) respond.Chances {
	best, _ := s.baseline()
	if s.Restarts+s.Probes == 0 {
		return s.model().Chances(best, target, worthwhile)
	}
	return s.model().Chances(best, target, noise)
}

func (s view) loses(target tuning.Settings) float64 {
	return lost(s.risk(s.model().Predict(target).Objective, s.Own, target))
}

// risk is what a try may lose. The cores that one trial leaves may be too few for another to start.
func (s view) risk(gains respond.Ratio, from, to tuning.Settings) respond.Ratio {
	if s.Policy.Measure().Objective != tuning.SearchTime {
		return gains
	}
	p := s.model().Predict(to).Time
	p.Mean -= s.model().Predict(from).Time.Mean
	return p
}

// lost is the expected share that a setting costs, where it costs more.
func lost(r respond.Ratio) float64 {
	return math.Min(respond.Ratio{Mean: -r.Mean, SD: r.SD}.Saved()*math.Exp(r.Mean+r.SD*r.SD/2), math.Expm1(dearest))
}

func (s view) kept(p respond.Prediction) float64 {
	if s.Policy.MaxSlowdown == 0 {
		return 1
	}
	return p.Time.Below(math.Log(s.Policy.MaxSlowdown))
}

func (s view) withinSlowdown(logTime float64) bool {
	return s.Policy.MaxSlowdown == 0 || logTime <= math.Log(s.Policy.MaxSlowdown)
}

// exposure is the largest cost of a probe at 95 %, in epochs. Fewer cores and less power have a
// natural bound; more of anything may turn out hopeless.
func (s view) exposure(target tuning.Settings) float64 {
	for _, name := range s.Own.Diff(target) {
		if k, _ := s.Policy.Knob(name); k.Follows != "" && target[k.Follows] != s.Own[k.Follows] {
			continue
		}
		was, now := s.Own[name].Float(), target[name].Float()
		if name != tuning.Memory && !(was > 0 && now > 0 && now < was) {
			return lookingOn
		}
	}
	q := s.model().Predict(target).Objective.Quantile(sure)
	return min(lookingOn, float64(s.epochsPerProbe())*max(math.Expm1(q), 0))
}

func (s view) searched() []tuning.Settings {
	list := s.Candidates
	if len(list) == 0 && len(s.Next) > 0 {
		list = []tuning.Settings{s.Next}
	}
	var out []tuning.Settings
	for _, c := range list {
		if t := s.target(c); !t.EqualButMemory(s.Own) && !s.harmed(t) {
			out = append(out, t)
		}
	}
	return out
}

// predicted moves to a setting that is better at 95 %, and by more than its restart costs. seconds
// is what it saves. An unmeasured value of a knob without a law is never sure.
func predicted(s view) (d tuning.Decision, seconds float64) {
	if s.spent() != tuning.ReasonNone || s.Profile == nil {
		return tuning.Decision{}, 0
	}
	from, logTime := s.present()
	var best tuning.Decision
	most := 0.0
	for _, c := range s.searched() {
		target, p := s.goal(c), s.model().Predict(c)
		gains := p.Objective
		if !s.Current.Equal(s.Own) {
			gains = s.model().Between(s.Current, c)
		}
		if target.Equal(s.Current) || !s.surely(s.Current, c) || s.outlasts(p) || s.overruns(math.Exp(p.Time.Mean-logTime)) {
			continue
		}
		saving := s.saves(gain{ratio: from.ratio}, gain{from.ratio + gains.Mean, gains.SD})
		if s.pays(saving, tuning.ReasonWorthless) != tuning.ReasonNone || saving.Value <= most {
			continue
		}
		if r, _ := s.overBudget(target, false); r != tuning.ReasonNone {
			continue
		}
		most = saving.Value
		best = decide(s, tuning.Move, tuning.ReasonPredicted, target, append(append(classEvidence(s.Class), predictedEvidence(p)...), worthAtLeast(s, saving)...)...)
	}
	return best, most
}

// promising is the setting to probe next, and the seconds that it and the probes after it are
// expected to save. Values of a knob without a law are tried step by step.
func (s view) promising() (best tuning.Settings, seconds float64) {
	after := s.served()
	if !(after > 0) {
		return nil, 0
	}
	next := s.target(s.Next)
	from, of := s.baseline()
	fewer, more, most := ladder{{kept: 1}}, ladder{{kept: 1}}, 0.0
	for _, c := range s.searched() {
		if s.ranUnder(c) || c.Equal(s.Current) || s.lawless(c) && !c.EqualButMemory(next) {
			continue
		}
		p, x := s.model().Predict(c), s.chances(c)
		r := rung{
			c, x.Kept, math.Exp(of) * x.Saves / max(x.Kept, 1e-9), s.loses(c) * float64(s.epochsPerProbe()) / after,
		}
		lawless := s.lawless(c)
		if !lawless && (x.Saves < noise || s.beyond(c) || s.outlasts(p)) {
			continue
		}
		if lawless || c[tuning.Cores] == s.Own[tuning.Cores] { // where only what follows them changes
			if v := r.kept*r.saves - r.loses; v > most && (lawless || s.Restarts+s.Probes > 0 || s.tempting(c, v)) {
				best, most = c, v
			}
			continue
		}
		if c[tuning.Cores].Float() < from[tuning.Cores].Float() {
			fewer = append(fewer, r)
		} else {
			more = append(more, r)
		}
	}
	probes := min(s.Policy.Budget.Probes-s.Probes, maxProbes)
	restart := s.paid() * s.price().Seconds() / (after * s.epoch().Value)
	for _, l := range []ladder{fewer, more} {
		v, c := l.climb(from[tuning.Cores].Float(), probes, restart)
		if c == nil { // none is allowed, or none is worth it
			v, c = l.climb(from[tuning.Cores].Float(), 1, 0)
		}
		if v > most && (s.Restarts+s.Probes > 0 || s.tempting(c, v)) {
			best, most = c, v
		}
	}
	return best, most * after * s.epoch().Value
}

// ladder is a list of settings at growing distance from the best measured one.
type ladder []rung

// rung is a setting with the probability that it keeps to the allowed slowdown, the share of
// the rest that it saves then, and the share that its probe loses.
type rung struct {
	settings           tuning.Settings
	kept, saves, loses float64
}

// climb returns the saving of the best sequence of probes, and its first setting: a binary search
// weighted by likelihood.
func (l ladder) climb(from float64, probes int, restart float64) (most float64, first tuning.Settings) {
	away := func(r rung) float64 {
		if r.settings == nil {
			return 0
		}
		return math.Abs(math.Log(r.settings[tuning.Cores].Float() / from))
	}
	slices.SortFunc(l, func(a, b rung) int { return cmp.Compare(away(a), away(b)) })
	for i := 1; i < len(l); i++ {
		l[i].kept = min(l[i].kept, l[i-1].kept)
	}
	type span struct{ low, high, probes int }
	known := map[span]float64{}
	var value func(s span) (float64, int)
	value = func(s span) (float64, int) {
		mass := l[s.low].kept
		if s.high < len(l) {
			mass -= l[s.high].kept
		}
		best, at := mass*l[s.low].saves, s.low
		if s.probes == 0 || !(mass > 0) {
			return best, at
		}
		if v, ok := known[s]; ok {
			return v, at
		}
		for i := s.low + 1; i < s.high; i++ {
			down, _ := value(span{s.low, i, s.probes - 1})
			up, _ := value(span{i, s.high, s.probes - 1})
			if v := down + up - mass*(restart+l[i].loses); v > best {
				best, at = v, i
			}
		}
		known[s] = best
		return best, at
	}
	most, at := value(span{0, len(l), probes})
	return most, l[at].settings
}

const (
	worthwhile = 0.1  // smallest log ratio that is worth a first disturbance
	likely     = 0.6  // probability of that from which no expected saving is asked for
	probeSaves = 0.08 // share of the rest that probes must be expected to save where the use of cores is unknown
	runSaves   = 0.15 // share that a whole run must be expected to save, which nothing stops
	stride     = 2    // octaves of cores that a probe may go beyond the measured ones
	maxProbes  = 6    // longest sequence that is weighed
)

// tempting reports whether a saving, as a share of the rest, that a setting and the probes after it are
// expected to bring is worth the first disturbance of a job. Where the use of its cores is unknown, its
// owner is taken to know what it needs; where it is known, probes need only repay their price.
func (s view) tempting(target tuning.Settings, saving float64) bool {
	return respond.UsageOf(s.Profile, s.Own) != nil || saving >= probeSaves || s.chances(target).Likely >= likely
}

func (s view) beyond(t tuning.Settings) bool {
	near := func(m tuning.Settings) bool {
		return math.Abs(math.Log2(t[tuning.Cores].Float()/m[tuning.Cores].Float())) <= stride+1e-9
	}
	return s.Own[tuning.Cores].Float() > 0 && !near(s.Own) && !slices.ContainsFunc(s.Trials, func(x tuning.Trial) bool { return near(x.Settings) })
}

// outlasts reports whether an epoch may be too long to reach its checkpoint in time.
func (s view) outlasts(p respond.Prediction) bool {
	c, now := s.Policy.Checkpoint, cmp.Or(s.EpochSeconds, s.KindSeconds)
	return c != nil && c.Grace > 0 && now*math.Exp(p.Time.Quantile(sure)) > c.Grace.Seconds() && now <= c.Grace.Seconds()
}

func (s view) lawless(t tuning.Settings) bool { return !s.Policy.CoresAlone(s.Own, t) }

func predictedEvidence(p respond.Prediction) []tuning.Evidence {
	return []tuning.Evidence{
		{Name: "predicted_log_ratio", Value: p.Objective.Mean},
		{Name: "predicted_log_ratio_at_most", Value: p.Objective.Quantile(sure)},
		{Name: "predicted_log_time", Value: p.Time.Mean},
		{Name: "predicted_log_time_at_most", Value: p.Time.Quantile(sure)},
	}
}
