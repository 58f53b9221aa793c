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
	explain := presumedLaws(m.own)
	if u := m.facts.Usage; u != nil {
		explain = u.laws(m.own)
	}
	best := 0.0
	laws := make([]law, 0, 1500)
	weights := make([]float64, 0, 1500)
	for l, w := range explain {
		laws, weights, best = append(laws, l), append(weights, w), max(best, w)
	}
	watts, shares := []power{{}}, []float64{1}
	if m.joules = m.objectiveOf(m.facts.Own)(1, 2) != 0; m.joules {
		own, _ := tuning.Reference(m.facts.Trials)
		watts, shares = meters(m.facts.Usage == nil || own.Source == tuning.Replayed)
		m.onGPU = gpuShare(m.facts.Usage, own)
	}
	for i, l := range laws {
		if weights[i] < faint*best {
			continue
		}
		for n, w := range watts {
			l.power = w
			m.laws, m.weights = append(m.laws, l), append(m.weights, weights[i]*shares[n])
		}
	}
}

// learn weighs the laws by a ratio that was measured between two numbers of cores; joules is
// NaN where unknown.
func (m *Model) learn(from, cores, time, joules, sd float64) {
	if !(sd > 0) || math.IsNaN(time) || math.IsInf(time, 0) {
		return
	}
	if math.IsInf(joules, 0) || !m.joules {
		joules = math.NaN()
	}
	z := make([]float64, len(m.laws))
	least := math.Inf(1)
	for i, l := range m.laws {
		says := math.Log(l.time(cores) / l.time(from))
		variance := sd*sd + m.misfit(says, math.Log2(cores/from))
		z[i] = (time-says)*(time-says)/variance + math.Log(variance)
		if !math.IsNaN(joules) {
			d := joules - math.Log(m.joulesOf(l, cores)/m.joulesOf(l, from))
			z[i] += d*d/variance + math.Log(variance)
		}
		if m.weights[i] > 0 {
			least = min(least, z[i])
		}
	}
	var sum, says float64
	for i, l := range m.laws {
		m.weights[i] *= math.Exp(-min(z[i]-least, 400) / 2)
		sum, says = sum+m.weights[i], says+m.weights[i]*math.Log(l.time(cores)/l.time(from))
	}
	if sum > 0 {
		m.amiss = max(m.amiss, (math.Abs(time-says/sum)-2*sd)/math.Abs(math.Log2(cores/from)))
	}
}

// misfit is the variance by which a job differs from a law that says by how much its time
// changes over so many octaves of cores. It is more where none explained what was seen.
func (m *Model) misfit(change, octaves float64) float64 {
	return lawShare*lawShare*change*change + (lawSD*lawSD+m.amiss*m.amiss)*octaves*octaves
}

// onlyCores is how many cores settings have that differ from the owner's in nothing else
// but memory and what follows the cores.
func (m *Model) onlyCores(s tuning.Settings) (float64, bool) {
	c := s[tuning.Cores].Float()
	return c, c >= 1 && c != m.own && m.facts.Policy.CoresAlone(m.facts.Own, s)
}
