package respond

import (
	"math"

	"pitchpipe/controller/tuning"
)

// faint is the weight, as a share of the largest, below which a law is left out.
const faint = 3e-3

// weigh takes the laws that explain the CPU time that the job used, with all that may be
// true of its power where its objective counts joules.
func (m *Model) weigh() {
	best := 0.0
	prior := make([]float64, 0, 1500)
	likelihood := m.likelihood()
	for l, w := range laws(m.own) {
		w *= likelihood(l)
		prior = append(prior, w)
		best = max(best, w)
	}
	watts, shares := []power{{}}, []float64{1}
	if m.joules = m.objectiveOf(m.facts.Own)(1, 2) != 0; m.joules {
		own, _ := tuning.Reference(m.facts.Trials)
		watts, shares = meters(m.facts.Usage == nil || own.Source == tuning.Replayed)
		m.onGPU = gpuShare(m.facts.Usage, own)
	}
	kept := 0
	for _, w := range prior {
		if w >= faint*best {
			kept++
		}
	}
	m.laws, m.weights = make([]law, 0, kept*len(watts)), make([]float64, 0, kept*len(watts))
	i := -1
	for l := range laws(m.own) {
		if i++; prior[i] < faint*best {
			continue
		}
		for n, w := range watts {
			l.power = w
			m.laws, m.weights = append(m.laws, l), append(m.weights, prior[i]*shares[n])
		}
	}
}

// likelihood is how well a law explains the CPU time that was used: a job that waits for
// storage would use more cores than it does. Where that is unknown, it is how well the law
// explains why the owner asked for so many cores.
func (m *Model) likelihood() func(law) float64 {
	const far = 7 // standard deviations, beyond which no law explains more than another
	normal := func(sd float64) func(float64) float64 {
		low, high, beyond := math.Exp(-far*sd), math.Exp(far*sd), math.Exp(-far*far/2)
		return func(ratio float64) float64 {
			if !(ratio > low && ratio < high) {
				return beyond
			}
			z := math.Log(ratio) / sd
			return math.Exp(-z * z / 2)
		}
	}
	u := m.facts.Usage
	if u == nil {
		explains := normal(presumedSD)
		return func(l law) float64 { return explains(presumed * m.own * l.time(m.own)) }
	}
	busy := min(u.Busy/max(1-min(u.Waiting, 0.9), 0.1), u.Cores)
	explains := normal(math.Hypot(usageSD, 0.5*u.Waiting+0.5*u.Pressure))
	return func(l law) float64 { return explains(busy / l.busy(u.Cores)) }
}

// learn weighs the laws by a ratio that was measured between two numbers of cores; joules is
// NaN where unknown.
func (m *Model) learn(from, cores, time, joules, sd float64) {
	sd = math.Hypot(sd, lawSD*math.Abs(math.Log2(cores/from)))
	if !(sd > 0) || math.IsNaN(time) || math.IsInf(time, 0) {
		return
	}
	if math.IsInf(joules, 0) || !m.joules {
		joules = math.NaN()
	}
	z := make([]float64, len(m.laws))
	least := math.Inf(1)
	for i, l := range m.laws {
		d := (time - math.Log(l.time(cores)/l.time(from))) / sd
		z[i] = d * d
		if !math.IsNaN(joules) {
			d = (joules - math.Log(m.joulesOf(l, cores)/m.joulesOf(l, from))) / sd
			z[i] += d * d
		}
		if m.weights[i] > 0 {
			least = min(least, z[i])
		}
	}
	for i := range m.laws {
		m.weights[i] *= math.Exp(-min(z[i]-least, 400) / 2)
	}
}

// onlyCores is how many cores settings have that differ from the owner's in nothing else
// but memory and what follows the cores.
func (m *Model) onlyCores(s tuning.Settings) (float64, bool) {
	c := s[tuning.Cores].Float()
	return c, c >= 1 && c != m.own && m.facts.Policy.CoresAlone(m.facts.Own, s)
}
