package respond

import (
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// Facts are what is known of a job.
type Facts struct {
	Policy tuning.Policy
	Own    tuning.Settings
	Usage  *Usage         // nil: unknown
	Trials []tuning.Trial // of this job
	Kind   []tuning.Effect
	Others []tuning.Effect // of the kind, whose owner asked for other cores then
	Class  []tuning.Effect
}

// shown is an effect that runs of the kind or the class showed.
type shown struct {
	tuning.Effect
	target tuning.Settings // complete
	sd     float64         // that this job's may differ by
}

func (f Facts) shown() []shown {
	var out []shown
	for i, e := range slices.Concat(f.Kind, f.Class) {
		between := betweenSD
		if i >= len(f.Kind) {
			between = classSD
		}
		if e.Runs > 0 {
			out = append(out, shown{e, f.Policy.Over(f.Own, e.Settings), e.Error(between)})
		}
	}
	return out
}

// Prediction is what a setting does, per epoch.
type Prediction struct {
	Time      Ratio // of seconds
	Objective Ratio // of what the policy minimises
}

// How much is not explained, in natural logs: of what a law says that changes, and per octave
// of cores besides; of a knob without a law; between runs of a kind, and between kinds of a
// class.
const (
	lawShare  = 0.12
	lawSD     = 0.01
	moreSD    = 0.25 // beyond the cores that the job was seen with: its threads may wait actively
	knobSD    = 0.15
	strangeSD = 0.05 // of such a knob per unit of its logarithm, away from where it was tried
	betweenSD = 0.04
	inputSD   = 0.08 // of the seconds of an epoch, between runs whose inputs are alike
	classSD   = 0.10
	usageSD   = 0.05

	// otherWork is how many of the runs with other cores do other work, as where the input grows with them.
	otherWork = 0.3

	// Where nothing says how many of its cores a job keeps busy, its owner is presumed to
	// have asked for what makes it faster: by so large a share of them, give or take. With
	// the last weight the owner guessed, and every share is as likely.
	presumed   = 0.9
	presumedSD = 0.2
	guess      = 0.6
)

// Model predicts. Use New.
type Model struct {
	facts   Facts
	shown   []shown
	laws    []weighed[law]
	own     float64 // cores
	amiss   float64 // what no law explained of what was seen, per octave of cores
	joules  bool    // the objective counts them
	onGPU   float64 // share of the joules that the job's GPUs take, which no law of cores lowers
	known   map[string]Prediction
	between map[[2]string]Ratio
	chances map[bet]Chances
}

// New weighs the laws by the facts.
func New(f Facts) *Model {
	m := &Model{facts: f, shown: f.shown(), own: f.Own[tuning.Cores].Float(), known: map[string]Prediction{}, between: map[[2]string]Ratio{}, chances: map[bet]Chances{}}
	if !(m.own >= 1) {
		return m
	}
	m.weigh()
	if own, ok := tuning.Reference(f.Trials); ok {
		for _, t := range f.Trials {
			if c, only := m.onlyCores(t.Settings); only && !t.Reference && t.Seconds > 0 && own.Seconds > 0 {
				m.learn(m.own, c, math.Log(t.Seconds/own.Seconds), t.JoulesRatio(own), m.trialSD(t, own))
			}
		}
	}
	for _, e := range m.shown {
		if c, only := m.onlyCores(e.target); only {
			m.learn(m.own, c, e.LogTime, m.effectJoules(e.Effect), e.sd)
		}
	}
	for _, e := range f.Others {
		was, now := e.From[tuning.Cores].Float(), e.Settings[tuning.Cores].Float()
		if was >= 1 && now >= 1 && was != now && e.Runs > 0 && f.Policy.CoresAlone(e.From, e.From.Merge(e.Settings)) {
			if e.Between {
				m.hint(was, now, e.LogTime, e.Error(inputSD))
				continue
			}
			m.learn(was, now, e.LogTime, m.effectJoules(e), e.Error(betweenSD))
		}
	}
	most := heaviest(m.laws)
	m.laws = slices.DeleteFunc(m.laws, func(l weighed[law]) bool { return l.weight < faint*faint*most })
	return m
}

// Predict is what settings do. What this job measured under them counts most.
func (m *Model) Predict(s tuning.Settings) Prediction {
	return memo(m.known, s.Key(), func() Prediction { return m.predict(s) })
}

func memo[K comparable, V any](known map[K]V, key K, find func() V) V {
	out, ok := known[key]
	if !ok {
		out = find()
		known[key] = out
	}
	return out
}

func (m *Model) predict(s tuning.Settings) Prediction {
	out := m.prior(s)
	for _, e := range m.shown {
		if tuning.Finite(e.LogRatio+e.LogTime) && len(e.Settings) > 0 && e.target.EqualButMemory(s) {
			out.Time, out.Objective = seen(out.Time, Ratio{e.LogTime, e.sd}), seen(out.Objective, Ratio{e.LogRatio, e.sd})
		}
	}
	i := slices.IndexFunc(m.facts.Trials, func(t tuning.Trial) bool { return t.Settings.EqualButMemory(s) })
	if i < 0 {
		return out
	}
	measured, counted, ok := m.measured(m.facts.Trials[i])
	if ok {
		out.Time = seen(out.Time, measured.Time)
	}
	if counted {
		out.Objective = seen(out.Objective, measured.Objective)
	}
	return out
}

// measured is what a trial showed; whether its objective was counted, and its time.
func (m *Model) measured(t tuning.Trial) (p Prediction, counted, ok bool) {
	own, ok := tuning.Reference(m.facts.Trials)
	ratio := math.Log(t.Seconds / own.Seconds)
	if !ok || t.Reference || !tuning.Finite(ratio) {
		return p, false, false
	}
	sd := m.trialSD(t, own)
	v, counted := t.LogRatio(own, m.facts.Policy.Measure())
	return Prediction{Ratio{ratio, sd}, Ratio{v, sd * m.facts.Policy.Measure().Degree()}}, counted, true
}

// Between compares two settings of cores: what is unknown of both alike cancels out.
func (m *Model) Between(from, to tuning.Settings) Ratio {
	return memo(m.between, [2]string{from.Key(), to.Key()}, func() Ratio { return m.compare(from, to) })
}

func (m *Model) compare(from, to tuning.Settings) Ratio {
	_, one := m.onlyCores(from)
	_, other := m.onlyCores(to)
	if !one || !other || from.EqualButMemory(to) {
		a, b := m.Predict(from).Objective, m.Predict(to).Objective
		return Ratio{b.Mean - a.Mean, math.Hypot(a.SD, b.SD)}
	}
	return m.mix(from, to).Objective
}

// nearest is a fully measured trial that is nearer to so many cores than the owner's settings.
func (m *Model) nearest(cores float64) (out tuning.Trial, found bool) {
	least := math.Abs(math.Log(cores / m.own))
	for _, t := range m.facts.Trials {
		c, only := m.onlyCores(t.Settings)
		_, counted, ok := m.measured(t)
		if away := math.Abs(math.Log(cores / c)); only && t.Epochs > 0 && ok && counted && away > 0 && away < least {
			out, least, found = t, away, true
		}
	}
	return out, found
}

// objectiveOf is the log ratio of what is minimised, where an epoch takes t times the seconds and j
// times the joules.
func (m *Model) objectiveOf(s tuning.Settings) func(t, j float64) float64 {
	joules, seconds := m.facts.Policy.Measure().Weights()
	switch {
	case m.facts.Policy.Measure().Priced(): // which is linear in both
		one := math.Exp(m.cost(s, 1, 1))
		perSecond := math.Exp(m.cost(s, 2, 1)) - one
		return func(t, j float64) float64 { return math.Log(perSecond*t + (one-perSecond)*j) }
	case joules == 0:
		return func(t, _ float64) float64 { return seconds * math.Log(t) }
	}
	return func(t, j float64) float64 { return seconds*math.Log(t) + joules*math.Log(j) }
}

func (m *Model) cost(s tuning.Settings, t, j float64) float64 {
	reference, ok := tuning.Reference(m.facts.Trials)
	if !ok || !(reference.Seconds > 0) { // energy is free where it was not measured
		reference = tuning.Trial{Settings: m.facts.Own, Seconds: 1}
	}
	trial := tuning.Trial{Settings: s, Seconds: reference.Seconds * t, Source: reference.Source}
	if reference.Joules != nil {
		trial.Joules = new(*reference.Joules * tuning.Joules(j))
	}
	if v, ok := trial.LogRatio(reference, m.facts.Policy.Measure()); ok {
		return v
	}
	return math.Log(t) // nothing that it asks for has a price
}

func (m *Model) trialSD(t, own tuning.Trial) float64 {
	return t.RatioError(own, tuning.EpochSD(m.facts.Trials...))
}

func (m *Model) effectJoules(e tuning.Effect) float64 {
	switch m.facts.Policy.Objective { //nolint:exhaustive // the others are made of more than joules
	case tuning.Energy:
		return e.LogRatio
	case tuning.EDP:
		return e.LogRatio - e.LogTime
	}
	return math.NaN()
}

// Usage is what the first epochs of a job show of what it makes of its cores.
type Usage struct {
	Cores    float64 // that it had
	Busy     float64 // CPU seconds per second
	Waiting  float64 // share of the time in which it waited for storage, 0 to 1
	Pressure float64 // share of the time in which its threads waited for a core, 0 to 1
	GPUWatts float64 // that its GPUs took; 0: it has none
	Switches float64 // voluntary context switches per CPU second
	Threads  float64 // per core; 0: unknown
	Other    bool    // shown by a run that did other work
}

// threads is how many of its own threads a core runs, at most one: 0 where unknown.
func (u *Usage) threads() float64 {
	if u == nil {
		return 0
	}
	return min(u.Threads, 1)
}

// How far the threads of a program may be from a thread per core without an effect, in natural logs, and from where more
// changes nothing; and the share of the time that counts as all of it.
const (
	fit     = 0.4
	far     = 1.4
	working = 0.6
)

// unfit is what a thread per core would do to the seconds of a program that chose another number: too many are in each
// other's way, while of too few it is unknown whether the program can use more. The zero Ratio: nothing.
func (u *Usage) unfit() Ratio {
	if u == nil || !(u.Threads > 0) {
		return Ratio{}
	}
	n := min(math.Abs(math.Log(u.Threads)), far)
	switch {
	case u.Crowded():
		return Ratio{-n / 4, n / 3}
	case n >= fit && u.Threads < 1 && u.Busy >= working*u.Cores*u.Threads:
		return Ratio{-n / 8, n / 4}
	}
	return Ratio{}
}

// Crowded reports whether a job has more threads than cores, which wait for cores or for each other. Many run-times
// keep threads that sleep.
func (u *Usage) Crowded() bool {
	return u != nil && math.Log(u.Threads) >= fit && (u.Pressure >= working || u.Switches > chatty && u.Busy >= working*u.Cores)
}

// UsageOf reads a profile; nil: it does not say.
func UsageOf(p *tuning.Profile, own tuning.Settings) *Usage {
	if p == nil {
		return nil
	}
	cores := p.Settings[tuning.Cores].Float()
	if cores == 0 {
		cores = own[tuning.Cores].Float()
	}
	utilisation, ok := p.Features["cpu_utilisation"]
	if !ok || !(cores >= 1) || !(utilisation > 0) {
		return nil
	}
	threads := 0.0
	if v, ok := p.Features["threads_per_core"]; ok {
		threads = math.Exp(v)
	}
	return &Usage{
		Cores: cores, Busy: utilisation * cores, Waiting: p.Features["io_pressure"], Pressure: p.Features["cpu_pressure"],
		GPUWatts: math.Expm1(p.Features["gpu_watts"]), Switches: voluntary(p), Threads: threads, Other: p.Other,
	}
}

// voluntary is how many context switches per CPU second a job's threads made to wait; 0: unknown.
func voluntary(p *tuning.Profile) float64 {
	all, counted := p.Features["context_switches"]
	ratio, compared := p.Features["voluntary_ratio"]
	if !counted || !compared {
		return 0
	}
	share := 1 / (1 + math.Exp(-ratio))
	return math.Expm1(all) * share
}
