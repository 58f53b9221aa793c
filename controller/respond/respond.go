package respond

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

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
	sd     float64         // by which this job's may differ
}

// shown are those effects.
func (f Facts) shown() []shown {
	var out []shown
	for i, e := range slices.Concat(f.Kind, f.Class) {
		between := betweenSD
		if i >= len(f.Kind) {
			between = classSD
		}
		if e.Runs > 0 {
			out = append(out, shown{e, f.Policy.Complete(f.Own.Merge(e.Settings)), differs(e, between)})
		}
	}
	return out
}

// differs is the standard deviation by which a job differs from an effect of others, which is
// never worth nothing.
func differs(e tuning.Effect, between float64) float64 {
	return math.Hypot(e.SD, between) / math.Sqrt(math.Max(e.Fresh(), 1e-3))
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
}

// threads is how many of its own threads a core runs, at most one: 0 where unknown.
func (u *Usage) threads() float64 {
	if u == nil {
		return 0
	}
	return min(u.Threads, 1)
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
		GPUWatts: math.Expm1(p.Features["gpu_watts"]), Switches: voluntary(p), Threads: threads,
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

// Ratio is a log ratio to the owner's settings: its mean and standard deviation.
type Ratio struct{ Mean, SD float64 }

// Quantile is the value that a standard normal quantile z stands for.
func (r Ratio) Quantile(z float64) float64 { return r.Mean + z*r.SD }

// Below is how likely it is less than a bound.
func (r Ratio) Below(bound float64) float64 {
	switch {
	case r.SD > 0:
		return distuv.UnitNormal.CDF((bound - r.Mean) / r.SD)
	case r.Mean <= bound:
		return 1
	}
	return 0
}

// Saved is the expected share that it saves where it does: that of 1-exp(r) above 0.
func (r Ratio) Saved() float64 {
	if !(r.SD > 0) {
		return max(-math.Expm1(r.Mean), 0)
	}
	n := distuv.UnitNormal
	return max(n.CDF(-r.Mean/r.SD)-math.Exp(r.Mean+r.SD*r.SD/2)*n.CDF(-r.Mean/r.SD-r.SD), 0)
}

// plus is the ratio of one step after another.
func (r Ratio) plus(o Ratio) Ratio { return Ratio{r.Mean + o.Mean, math.Hypot(r.SD, o.SD)} }

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
	classSD   = 0.10
	usageSD   = 0.05

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
}

// New weighs the laws by the facts.
func New(f Facts) *Model {
	m := &Model{facts: f, shown: f.shown(), own: f.Own[tuning.Cores].Float(), known: map[string]Prediction{}, between: map[[2]string]Ratio{}}
	if !(m.own >= 1) {
		return m
	}
	m.weigh()
	if own, ok := tuning.Reference(f.Trials); ok {
		for _, t := range f.Trials {
			if c, only := m.onlyCores(t.Settings); only && !t.Reference && t.Seconds > 0 && own.Seconds > 0 {
				m.learn(m.own, c, math.Log(t.Seconds/own.Seconds), joulesRatio(t, own), m.trialSD(t, own))
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
			m.learn(was, now, e.LogTime, m.effectJoules(e), differs(e, betweenSD))
		}
	}
	m.forget()
	return m
}

// Predict is what settings do. What this job measured under them counts most.
func (m *Model) Predict(s tuning.Settings) Prediction {
	key := s.Key()
	out, ok := m.known[key]
	if !ok {
		out = m.predict(s)
		m.known[key] = out
	}
	return out
}

func (m *Model) predict(s tuning.Settings) Prediction {
	out := m.prior(s)
	for _, e := range m.shown {
		if isFinite(e.LogRatio+e.LogTime) && len(e.Settings) > 0 && e.target.EqualButMemory(s) {
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

// measured is what a trial that is not the reference showed of itself; whether its objective
// was counted, and whether its time was.
func (m *Model) measured(t tuning.Trial) (p Prediction, counted, ok bool) {
	own, ok := tuning.Reference(m.facts.Trials)
	ratio := math.Log(t.Seconds / own.Seconds)
	if !ok || t.Reference || !isFinite(ratio) {
		return p, false, false
	}
	sd := m.trialSD(t, own)
	v, counted := t.LogRatio(own, m.facts.Policy.Measure())
	return Prediction{Ratio{ratio, sd}, Ratio{v, sd * m.facts.Policy.Measure().Degree()}}, counted, true
}

// Between is by how much the objective differs under one of two settings of cores, as a log
// ratio to that under the other: what is unknown of both alike cancels out.
func (m *Model) Between(from, to tuning.Settings) Ratio {
	key := [2]string{from.Key(), to.Key()}
	out, ok := m.between[key]
	if !ok {
		out = m.compare(from, to)
		m.between[key] = out
	}
	return out
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

// step is what one law says of the way from one setting of cores to another: log ratios, and
// the variance of what it does not explain.
type step struct{ weight, time, objective, variance float64 }

// steps are those of all laws.
func (m *Model) steps(from, to tuning.Settings) []step {
	was, cores := max(from[tuning.Cores].Float(), 1), max(to[tuning.Cores].Float(), 1)
	octaves, more := math.Log2(cores/was), 0.0
	if most := max(m.own, was); cores > most {
		more = moreSD * math.Log2(cores/most)
	}
	before, after := m.objectiveOf(from), m.objectiveOf(to)
	out := make([]step, len(m.laws))
	for i, x := range m.laws {
		l := x.value
		own := l.time(m.own)
		t, b := l.time(cores)/own, l.time(was)/own
		var j, k float64
		if m.joules {
			j, k = m.joulesOf(l, cores), m.joulesOf(l, was)
		}
		time := math.Log(t / b)
		out[i] = step{x.weight, time, after(t, j) - before(b, k), m.misfit(time, octaves) + more*more}
	}
	return out
}

// mix is the mixture of the laws between two settings of cores.
func (m *Model) mix(from, to tuning.Settings) Prediction {
	var sum, unexplained float64
	var time, objective moments
	for _, s := range m.steps(from, to) {
		sum += s.weight
		unexplained += s.weight * s.variance
		time.add(s.weight, s.time)
		objective.add(s.weight, s.objective)
	}
	sd := 0.0
	if sum > 0 {
		sd = math.Sqrt(unexplained / sum)
	}
	return Prediction{time.ratio(sum, sd), objective.ratio(sum, sd)}
}

// Chances are what may be hoped for of a setting, each law for itself: what one of them hopes
// another may rule out, which no mean of both says.
type Chances struct {
	Kept   float64 // how likely it keeps to the slowdown that the owner allows
	Likely float64 // how likely it does, and saves more than the least
	Saves  float64 // the expected share that it saves where it keeps to the slowdown, times Kept
}

// Chances are those of one setting beside another, of which a log ratio up to -least is a saving.
func (m *Model) Chances(from, to tuning.Settings, least float64) Chances {
	limit := math.Inf(1)
	if slowest := m.facts.Policy.MaxSlowdown; slowest > 0 {
		limit = math.Log(slowest)
	}
	of := func(time, gains Ratio) Chances {
		kept := time.Below(limit)
		return Chances{kept, kept * gains.Below(-least), kept * gains.Saved()}
	}
	_, one := m.onlyCores(from)
	if _, other := m.onlyCores(to); !other || !one && !from.EqualButMemory(m.facts.Own) || m.shows(to) {
		return of(m.Predict(to).Time, m.Between(from, to))
	}
	gains, time := m.steps(from, to), m.times(to)
	var out Chances
	sum := 0.0
	for i, s := range gains {
		c := of(time(i), Ratio{s.objective, math.Sqrt(s.variance)})
		sum += s.weight
		out = Chances{out.Kept + s.weight*c.Kept, out.Likely + s.weight*c.Likely, out.Saves + s.weight*c.Saves}
	}
	if !(sum > 0) {
		return Chances{}
	}
	return Chances{out.Kept / sum, out.Likely / sum, out.Saves / sum}
}

// shows reports whether anything ran under so many cores.
func (m *Model) shows(s tuning.Settings) bool {
	return slices.ContainsFunc(m.facts.Trials, func(t tuning.Trial) bool { return t.Settings.EqualButMemory(s) }) ||
		slices.ContainsFunc(m.shown, func(e shown) bool { return e.target.EqualButMemory(s) })
}

// times is what each law says of the seconds under a setting of cores.
func (m *Model) times(s tuning.Settings) func(law int) Ratio {
	direct := m.steps(m.facts.Own, s)
	ratio := func(x step) Ratio { return Ratio{x.time, math.Sqrt(x.variance)} }
	near, there, between, ok := m.way(s)
	if !ok {
		return func(i int) Ratio { return ratio(direct[i]) }
	}
	on := m.steps(near, s)
	return func(i int) Ratio {
		by := there.Time.plus(ratio(on[i]))
		if between {
			return join(ratio(direct[i]), by)
		}
		return by
	}
}

// way is the trial nearest to a setting of cores, what is known of it, and whether the setting
// lies between it and the owner's.
func (m *Model) way(s tuning.Settings) (near tuning.Settings, there Prediction, between, ok bool) {
	c := s[tuning.Cores].Float()
	t, ok := m.nearest(c)
	if !ok {
		return nil, Prediction{}, false, false
	}
	shown, _, _ := m.measured(t)
	there = m.mix(m.facts.Own, t.Settings)
	there = Prediction{seen(there.Time, shown.Time), seen(there.Objective, shown.Objective)}
	return t.Settings, there, (m.own-c)*(c-t.Settings[tuning.Cores].Float()) > 0, true
}

// prior is what settings do by the laws of cores, and by what is known of other knobs.
func (m *Model) prior(s tuning.Settings) Prediction {
	if s.EqualButMemory(m.facts.Own) {
		return Prediction{}
	}
	var out Prediction
	if c := s[tuning.Cores].Float(); c != m.own && m.own >= 1 {
		out = m.mix(m.facts.Own, s)
		if near, there, between, ok := m.way(s); ok {
			on := m.mix(near, s)
			by := Prediction{there.Time.plus(on.Time), there.Objective.plus(on.Objective)}
			if between {
				by = Prediction{join(out.Time, by.Time), join(out.Objective, by.Objective)}
			}
			out = by
		}
	}
	for _, name := range m.facts.Own.Diff(s) {
		k, _ := m.facts.Policy.Knob(name)
		if name == tuning.Cores || name == tuning.Memory || k.Follows != "" {
			continue
		}
		time, joules := m.slope(name, s)
		objective := m.objectiveOf(s)
		o := objective(math.Exp(time.Mean), math.Exp(joules.Mean)) - objective(1, 1)
		sd := math.Max(math.Abs(objective(math.Exp(time.SD), math.Exp(joules.SD))-objective(1, 1)), knobSD/2)
		out = Prediction{out.Time.plus(time), out.Objective.plus(Ratio{o, sd})}
	}
	return out
}

// nearest is the trial that is nearer to so many cores than the owner's settings, and was
// measured in full.
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

// objectiveOf is the log ratio of what is minimised under settings, where an epoch takes t
// times the seconds and j times the joules.
func (m *Model) objectiveOf(s tuning.Settings) func(t, j float64) float64 {
	joules, seconds := m.facts.Policy.Measure().Weights()
	switch {
	case m.facts.Policy.Objective == tuning.Cost: // which is linear in both
		one := math.Exp(m.cost(s, 1, 1))
		perSecond := math.Exp(m.cost(s, 2, 1)) - one
		return func(t, j float64) float64 { return math.Log(perSecond*t + (one-perSecond)*j) }
	case joules == 0:
		return func(t, _ float64) float64 { return seconds * math.Log(t) }
	}
	return func(t, j float64) float64 { return seconds*math.Log(t) + joules*math.Log(j) }
}

// cost is that log ratio of the cost.
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

// moments add up a weighted mean and variance.
type moments struct{ sum, squares float64 }

func (m *moments) add(w, v float64) {
	m.sum += w * v
	m.squares += w * v * v
}

func (m *moments) ratio(weight, sd float64) Ratio {
	if !(weight > 0) {
		return Ratio{0, 1}
	}
	mean := m.sum / weight
	return Ratio{mean, math.Sqrt(max(m.squares/weight-mean*mean, 0) + sd*sd)}
}

// seen joins what was predicted of a setting with what was measured under it. The further
// both are apart beyond their errors, the less the prediction counts: then no law fits.
func seen(predicted, measured Ratio) Ratio {
	apart := predicted.Mean - measured.Mean
	unexplained := apart*apart - predicted.SD*predicted.SD - measured.SD*measured.SD
	predicted.SD = math.Hypot(predicted.SD, math.Sqrt(max(unexplained, 0)))
	return join(predicted, measured)
}

// join is the product of two independent statements about one ratio.
func join(a, b Ratio) Ratio {
	if !(a.SD > 0) {
		return a
	}
	wa, wb := 1/(a.SD*a.SD), 1/(b.SD*b.SD)
	return Ratio{(wa*a.Mean + wb*b.Mean) / (wa + wb), math.Sqrt(1 / (wa + wb))}
}

// trialSD is the standard error of the log ratio of two trials of one job.
func (m *Model) trialSD(t, own tuning.Trial) float64 {
	return t.RatioError(own, tuning.EpochSD(m.facts.Trials...))
}

func joulesRatio(t, own tuning.Trial) float64 {
	if t.Joules == nil || own.Joules == nil || t.Source != own.Source || !(*t.Joules > 0) || !(*own.Joules > 0) {
		return math.NaN()
	}
	return math.Log(float64(*t.Joules / *own.Joules))
}

// effectJoules is what an effect says about joules, where its objective is made of them.
func (m *Model) effectJoules(e tuning.Effect) float64 {
	switch m.facts.Policy.Objective { //nolint:exhaustive // the others are made of more than joules
	case tuning.Energy:
		return e.LogRatio
	case tuning.EDP:
		return e.LogRatio - e.LogTime
	}
	return math.NaN()
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
