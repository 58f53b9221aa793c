package recur

import "math"

// bulge is how far the cost of an epoch may depart from a line between two values of a
// knob for each octave between them, beside roughness.
const bulge = 0.1

// step is the point of a line in the middle of the wider gap beside the best one, and at
// most an octave away from it where there is one: a whole run is the price of a mistake.
func (t *Tuner) step(line []int, at, low, high int) (int, bool) {
	below, above := at-low-1, high-at-1
	if below <= 0 && above <= 0 {
		return 0, false
	}
	by, to := -1, (low+at+1)/2
	if above > below {
		by, to = 1, (at+high)/2
	}
	for to != at+by && t.apart(line[at], line[to]) > stride+1e-9 {
		to -= by
	}
	if low >= 0 && by < 0 || high < len(line) && by > 0 {
		return line[to], t.between(line, at, to)
	}
	return line[to], true
}

// between tells whether a point of a line between two that were measured, the one of which
// is the best, is worth a run.
func (t *Tuner) between(line []int, at, to int) bool {
	guess, ok := t.guess(line, to)
	if !ok {
		return true
	}
	gap := guess - t.choiceAt(line[at], 1).score
	return t.horizon()*improvement(gap, roughness+bulge*t.apart(line[at], line[to])) > math.Expm1(max(gap, 0))
}

// apart is how far two points are from each other in their system knobs, in octaves.
func (t *Tuner) apart(p, q int) float64 {
	sum := 0.0
	for _, k := range t.system {
		v, w := t.Points[p][k.Name], t.Points[q][k.Name]
		switch {
		case v == w:
		case v.IsNumber() && w.IsNumber() && v.Float() > 0 && w.Float() > 0:
			sum += math.Abs(math.Log2(v.Float() / w.Float()))
		default:
			sum++
		}
	}
	return sum
}
