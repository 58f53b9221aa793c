package propose

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// improvement begins the candidate that is expected to improve most on the best so far.
type improvement struct {
	*Candidates
	start    []int     // candidates to begin with before the process is asked
	expected []float64 // of each candidate, up to a constant; nil: nothing is
}

// Gaussian begins with a few candidates that are spread evenly and then asks a Gaussian
// process over the losses at the lowest rung. expected is what earlier jobs let expect of
// each candidate, see History; nil where there were none.
func (c *Candidates) Gaussian(expected []float64, rng *rand.Rand) Method {
	few := 3
	if expected == nil { // enough to tell the axes apart
		few = max(few, (len(c.Axes)+3)/2)
	}
	return improvement{c, c.latin(few, rng), expected}
}

// Next is the candidate with the greatest expected improvement. Ties go to the first.
func (m improvement) Next(trials []Trial) (int, error) {
	begun := begun(trials)
	for _, at := range m.start {
		if !begun[at] {
			return at, nil
		}
	}
	at, y := Outcomes(trials)
	all := data{expected: m.expected}
	if len(at) == 0 { // nothing is known: the one that is expected to be best
		next := -1
		for i := range m.Points {
			if !begun[i] && (next < 0 || all.before(i) < all.before(next)) {
				next = i
			}
		}
		return next, nil
	}
	d := data{y: y}
	for _, i := range at {
		d.x = append(d.x, m.Points[i])
		d.expected = append(d.expected, all.before(i))
	}
	p, err := m.fit(d, usualNoise, noiseSD)
	if err != nil {
		return -1, err
	}
	best := math.Inf(1)
	for i, x := range d.x {
		mean, _ := p.predict(x, d.before(i))
		best = min(best, mean)
	}
	next, most := -1, math.Inf(-1)
	for i, x := range m.Points {
		if begun[i] {
			continue
		}
		mean, sd := p.predict(x, all.before(i))
		if gain := logImprovement(mean, sd, best); next < 0 || gain > most {
			next, most = i, gain
		}
	}
	return next, nil
}

// Improvement is the expected value of what lies below 0 of a normal variable.
func Improvement(mean, sd float64) float64 {
	if !(sd > 0) {
		return max(-mean, 0)
	}
	z := -mean / sd
	return sd * (z*distuv.UnitNormal.CDF(z) + distuv.UnitNormal.Prob(z))
}

// logImprovement orders candidates as the improvement on the best does, also where that is
// too small for a number.
func logImprovement(mean, sd, best float64) float64 {
	if v := Improvement(mean-best, sd); v > 0 {
		return math.Log(v)
	}
	return math.Log(math.SmallestNonzeroFloat64) - (mean-best)/max(sd, vanishing)
}
