package bandit

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"pitchpipe/controller/search/design"
)

// Prior says how large effects and noise are, relative to the spread of what was
// measured.
type Prior struct {
	Effect float64 // standard deviation of the effect of a level
	Noise  float64 // of a measurement about the sum of effects
}

// DefaultPrior expects the knobs to explain most of what differs.
func DefaultPrior() Prior { return Prior{Effect: 1, Noise: 0.3} }

// Search is one bandit over finite candidates.
type Search struct {
	Levels [][]int // of each candidate by axis, from design.Space
	Prior  Prior
}

// Next is the candidate to measure next, or -1 when all were.
func (s Search) Next(seen []design.Seen, rng *rand.Rand) int {
	tried := design.Tried(seen, len(s.Levels))
	effects := s.draw(seen, rng)
	next, least := -1, math.Inf(1)
	for i, levels := range s.Levels {
		sum := 0.0
		for a, l := range levels {
			sum += effects[a][l]
		}
		if !tried[i] && sum < least {
			next, least = i, sum
		}
	}
	return next
}

// draw takes one sample of all effects from their joint posterior: that of a linear
// model with a normal prior, by its precision matrix.
func (s Search) draw(seen []design.Seen, rng *rand.Rand) [][]float64 {
	first, n := s.index()
	y, noise := s.outcomes(seen)
	effect := s.Prior.Effect / max(s.Prior.Noise, 1e-6) * noise
	precision := mat.NewSymDense(n, nil)
	sums := mat.NewVecDense(n, nil)
	for i := range n {
		precision.SetSym(i, i, 1/(effect*effect))
	}
	for k, o := range seen {
		levels := s.Levels[o.At]
		for a, l := range levels {
			i := first[a] + l
			sums.SetVec(i, sums.AtVec(i)+y[k]/(noise*noise))
			for b, m := range levels[:a+1] {
				j := first[b] + m
				precision.SetSym(i, j, precision.At(i, j)+1/(noise*noise))
			}
		}
	}
	var chol mat.Cholesky
	chol.Factorize(precision) // a positive diagonal was put in: it is never singular
	mean := mat.NewVecDense(n, nil)
	_ = chol.SolveVecTo(mean, sums)
	luck := mat.NewVecDense(n, nil)
	for i := range n {
		luck.SetVec(i, rng.NormFloat64())
	}
	var upper mat.TriDense
	chol.UTo(&upper)
	_ = luck.SolveVec(&upper, luck) // U⁻¹ z has the covariance (UᵀU)⁻¹
	mean.AddVec(mean, luck)
	out := make([][]float64, len(first))
	for a := range first {
		to := n
		if a+1 < len(first) {
			to = first[a+1]
		}
		out[a] = mean.RawVector().Data[first[a]:to]
	}
	return out
}

// index is where the levels of each axis begin among all levels, and how many there are.
func (s Search) index() (first []int, n int) {
	if len(s.Levels) == 0 {
		return nil, 1
	}
	for a := range s.Levels[0] {
		first = append(first, n)
		most := 0
		for _, levels := range s.Levels {
			most = max(most, levels[a])
		}
		n += most + 1
	}
	return first, max(n, 1)
}

// outcomes are the measurements about their mean, failed ones at the worst, and the
// standard deviation of the noise in the same unit.
func (s Search) outcomes(seen []design.Seen) ([]float64, float64) {
	worst, some := design.Worst(seen)
	if !some {
		worst = 0
	}
	y := make([]float64, len(seen))
	mean := 0.0
	for k, o := range seen {
		y[k] = o.Log
		if o.Failed {
			y[k] = worst
		}
		mean += y[k] / float64(len(seen))
	}
	square := 0.0
	for k := range y {
		y[k] -= mean
		square += y[k] * y[k] / float64(max(len(y)-1, 1))
	}
	if square == 0 {
		square = 1
	}
	return y, s.Prior.Noise * math.Sqrt(square)
}
