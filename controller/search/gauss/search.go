package gauss

import (
	"math"

	"pitchpipe/controller/search/design"
)

// Search is one optimisation over finite candidates.
type Search struct {
	Points [][]float64 // of the candidates, from design.Space
	Words  []bool      // by axis, from design.Space
	Prior  Prior

	// Start are candidates to measure before the model is asked, in this order.
	Start []int

	// Expected is what earlier jobs let expect of each candidate, up to a constant;
	// nil where there were none. See History.
	Expected []float64
}

// Next is the candidate to measure next, or -1 when all were. Ties go to the first.
func (s Search) Next(seen []design.Seen) (int, error) {
	tried := design.Tried(seen, len(s.Points))
	for _, at := range s.Start {
		if !tried[at] {
			return at, nil
		}
	}
	if len(seen) == 0 {
		return s.promising(), nil
	}
	m, err := s.model(seen)
	if err != nil {
		return -1, err
	}
	best := math.Inf(1)
	for _, o := range seen {
		mean, _ := m.Predict(s.Points[o.At], s.expected(o.At))
		best = min(best, mean)
	}
	next, most := -1, math.Inf(-1)
	for i, x := range s.Points {
		if tried[i] {
			continue
		}
		mean, sd := m.Predict(x, s.expected(i))
		if gain := logImprovement(mean, sd, best); next < 0 || gain > most {
			next, most = i, gain
		}
	}
	return next, nil
}

// logImprovement orders candidates as the expected improvement does, also where that
// is too small for a number.
func logImprovement(mean, sd, best float64) float64 {
	if ei := ExpectedImprovement(mean, sd, best); ei > 0 {
		return math.Log(ei)
	}
	z := (mean - best) / max(sd, 1e-12)
	return math.Log(math.SmallestNonzeroFloat64) - z
}

// model fits what was seen. A failed run counts as the worst that was measured: its
// true outcome is unknown, but nothing near it is worth a look.
func (s Search) model(seen []design.Seen) (*Model, error) {
	worst, some := design.Worst(seen)
	if !some {
		worst = 0
	}
	d := Data{Words: s.Words}
	for _, o := range seen {
		y := o.Log
		if o.Failed {
			y = worst
		}
		d.X, d.Y = append(d.X, s.Points[o.At]), append(d.Y, y)
		if s.Expected != nil {
			d.Mean = append(d.Mean, s.Expected[o.At])
		}
	}
	return Fit(d, s.Prior)
}

func (s Search) expected(i int) float64 {
	if s.Expected == nil {
		return 0
	}
	return s.Expected[i]
}

// promising is the candidate to begin with where nothing was measured: the one that
// was expected to be best, else the first.
func (s Search) promising() int {
	best := 0
	for i := range s.Expected {
		if s.Expected[i] < s.Expected[best] {
			best = i
		}
	}
	if len(s.Points) == 0 {
		return -1
	}
	return best
}

// Start is how many measurements a search of so many axes should begin with before the
// model is asked: enough to tell the axes apart, few enough to leave the budget to it.
func Start(axes int) int { return max(3, (axes+3)/2) }
