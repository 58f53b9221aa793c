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
	all, prior := laws(m.own)
	best := 0.0
	for i, l := range all {
		if u := m.facts.Usage; u != nil {
			prior[i] *= u.likelihood(l)
		} else {
			z := math.Log(presumed*m.own*l.time(m.own)) / presumedSD
			prior[i] *= math.Exp(-min(z*z, 100) / 2)
		}
		best = max(best, prior[i])
	}
	watts, shares := []power{{}}, []float64{1}
	if m.joules = m.objectiveOf(m.facts.Own)(1, 2) != 0; m.joules {
		own, _ := tuning.Reference(m.facts.Trials)
		watts, shares = meters(m.facts.Usage == nil || own.Source == tuning.Replayed)
	}
	kept := 0
	for _, w := range prior {
		if w >= faint*best {
			kept++
		}
	}
	m.laws, m.weights = make([]law, 0, kept*len(watts)), make([]float64, 0, kept*len(watts))
	for i, l := range all {
		if prior[i] < faint*best {
			continue
		}
		for n, w := range watts {
			l.power = w
			m.laws, m.weights = append(m.laws, l), append(m.weights, prior[i]*shares[n])
		}
	}
}

// likelihood is how well a law explains the CPU time that was used. A job that waits for
// storage would use more cores than it does.
func (u Usage) likelihood(l law) float64 {
	busy := u.Busy / max(1-min(u.Waiting, 0.9), 0.1)
	sd := math.Hypot(usageSD, 0.5*u.Waiting+0.5*u.Pressure)
	z := math.Log(min(busy, u.Cores)/l.busy(u.Cores)) / sd
	return math.Exp(-min(z*z, 100) / 2)
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
			d = (joules - math.Log(l.joules(cores, m.own)/l.joules(from, m.own))) / sd
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
