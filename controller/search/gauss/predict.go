package gauss

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Predict is the expected outcome at a point and its standard deviation, that of the
// noise of a measurement left out. expected is what was expected there before, 0
// where the data had no Mean.
func (m *Model) Predict(x []float64, expected float64) (mean, sd float64) {
	n := len(m.data.Y)
	k := mat.NewVecDense(n, nil)
	s := make([]float64, len(x))
	for i, q := range m.data.X {
		steps(x, q, m.data.Words, s)
		k.SetVec(i, m.hyper.correlation(s, nil)+m.trend(i, expected))
	}
	v := mat.NewVecDense(n, nil)
	_ = m.chol.SolveVecTo(v, k) // it was factored
	rest := 1 - mat.Dot(k, m.ones)
	own := 1.0
	if m.data.Mean != nil {
		own += m.weight * expected * expected
	}
	variance := own - mat.Dot(k, v) + rest*rest/mat.Sum(m.ones) // the last: the mean is estimated
	return expected + m.mean + mat.Dot(k, m.alpha), math.Sqrt(max(variance, 0) * m.signal)
}

func (m *Model) trend(i int, expected float64) float64 {
	if m.data.Mean == nil {
		return 0
	}
	return m.weight * m.data.Mean[i] * expected
}

// Noise is the standard deviation of one measurement.
func (m *Model) Noise() float64 { return math.Sqrt(m.hyper.noise * m.signal) }

// ExpectedImprovement is how much lower than best the outcome is expected to be where
// only an improvement counts.
func ExpectedImprovement(mean, sd, best float64) float64 {
	if sd <= 0 {
		return max(best-mean, 0)
	}
	z := (best - mean) / sd
	return (best-mean)*distuv.UnitNormal.CDF(z) + sd*distuv.UnitNormal.Prob(z)
}
