package respond

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/tuning"
)

// step is what one law expects of the way from one setting to another: log ratios, and the variance
// of what it does not explain.
type step struct{ weight, time, objective, variance float64 }

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

// Chances are what may be hoped for of a setting, each law for itself: one may rule out what
// another hopes.
type Chances struct {
	Kept   float64 // how likely it keeps to the slowdown that the owner allows
	Likely float64 // how likely it does, and saves more than the least
	Saves  float64 // the expected share that it saves where it keeps to the slowdown, times Kept
}

// Chances are those of one setting against another; a log ratio up to -least is a saving.
func (m *Model) Chances(from, to tuning.Settings, least float64) Chances {
	return memo(m.chances, bet{from.Key(), to.Key(), least}, func() Chances { return m.hope(from, to, least) })
}

type bet struct {
	from, to string
	least    float64
}

func (m *Model) hope(from, to tuning.Settings, least float64) Chances {
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

func (m *Model) shows(s tuning.Settings) bool {
	return slices.ContainsFunc(m.facts.Trials, func(t tuning.Trial) bool { return t.Settings.EqualButMemory(s) }) ||
		slices.ContainsFunc(m.shown, func(e shown) bool { return e.target.EqualButMemory(s) })
}

func (m *Model) times(s tuning.Settings) func(law int) Ratio {
	ratio := func(x step) Ratio { return Ratio{x.time, math.Sqrt(x.variance)} }
	near, there, between, ok := m.way(s)
	var direct []step
	if !ok || between {
		direct = m.steps(m.facts.Own, s)
	}
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

// way is the trial nearest to a setting of cores, and whether the setting lies between it and the
// owner's.
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
	unfit := m.facts.Usage.unfit()
	for _, name := range m.facts.Own.Diff(s) {
		k, _ := m.facts.Policy.Knob(name)
		time, joules := Ratio{}, Ratio{}
		switch {
		case k.Follows == tuning.Cores && !m.facts.Own[name].IsSet() && s[tuning.Cores] == m.facts.Own[tuning.Cores]:
			if unfit.SD == 0 {
				continue
			}
			time, joules, unfit = unfit, unfit, Ratio{} // several variables may set the same threads
		case name == tuning.Cores || name == tuning.Memory || k.Follows != "":
			continue
		default:
			time, joules = m.slope(name, s)
		}
		objective := m.objectiveOf(s)
		o := objective(math.Exp(time.Mean), math.Exp(joules.Mean)) - objective(1, 1)
		sd := math.Max(math.Abs(objective(math.Exp(time.SD), math.Exp(joules.SD))-objective(1, 1)), knobSD/2)
		out = Prediction{out.Time.plus(time), out.Objective.plus(Ratio{o, sd})}
	}
	return out
}

// Ratio is a log ratio to the owner's settings: its mean and standard deviation.
type Ratio struct{ Mean, SD float64 }

// Quantile is the value of a standard normal quantile z.
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

func (r Ratio) plus(o Ratio) Ratio { return Ratio{r.Mean + o.Mean, math.Hypot(r.SD, o.SD)} }

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

// seen joins a prediction with a measurement. The further both are apart beyond their errors, the
// less the prediction counts: then no law fits.
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
