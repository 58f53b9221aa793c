package gauss

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// Model is a fitted process.
type Model struct {
	data   Data
	hyper  hyper
	chol   mat.Cholesky
	alpha  *mat.VecDense // C⁻¹ (y - mean)
	ones   *mat.VecDense // C⁻¹ 1
	mean   float64
	signal float64 // variance
	weight float64 // of the trend
}

// plenty is the number of observations from which on one start finds what two would.
const plenty = 40

// Fit finds the covariance that the data and the prior make most likely. It is
// deterministic.
func Fit(d Data, p Prior) (*Model, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	f := newFitter(d, p)
	start := make([]float64, len(f.centre))
	copy(start, f.centre)
	best, value := start, f.at(start).value
	problem := optimize.Problem{
		Func: func(x []float64) float64 { return f.at(x).value },
		Grad: func(grad, x []float64) { copy(grad, f.at(x).slope) },
	}
	settings := &optimize.Settings{MajorIterations: 40, GradientThreshold: 1e-3, Converger: &optimize.FunctionConverge{Absolute: 1e-4, Iterations: 4}}
	for _, shift := range []float64{0, -1} {
		from := make([]float64, len(start))
		copy(from, start)
		for a := range d.Words {
			from[a] += shift * p.LengthSD
		}
		// A line search that finds no way down has still looked: its best is kept.
		result, _ := optimize.Minimize(problem, from, settings, &optimize.LBFGS{})
		if result != nil && result.F < value {
			best, value = result.X, result.F
		}
		if len(d.Y) < 3 || len(d.Y) > plenty {
			break
		}
	}
	return f.model(best)
}

// fitter holds what does not change while the parameters do.
type fitter struct {
	Data
	prior  Prior
	y      []float64   // without what was expected, and about their mean
	offset float64     // that mean
	spread float64     // variance of the signal that is believed
	weight float64     // of the trend, relative to the signal
	dist   [][]float64 // distances along the axes, pair by pair below the diagonal
	slopes [][]float64 // of the correlation, pair by pair, filled anew for every x
	last   evaluation
	centre []float64 // of the priors: log lengths, logit of the sum, log of the noise
	width  []float64
}

func newFitter(d Data, p Prior) *fitter {
	axes := len(d.Words)
	f := &fitter{Data: d, prior: p, y: make([]float64, len(d.Y))}
	copy(f.y, d.Y)
	for i := range d.Mean {
		f.y[i] -= d.Mean[i]
	}
	for _, y := range f.y {
		f.offset += y / float64(len(f.y))
	}
	for i := range f.y { // so that the unit of the outcome costs no digits
		f.y[i] -= f.offset
	}
	f.spread = p.Signal * p.Signal
	if f.spread == 0 {
		f.spread = variance(f.y)
	}
	f.weight = p.TrendSD * p.TrendSD / f.spread
	for i := range d.X {
		for j := range i {
			s := make([]float64, axes)
			steps(d.X[i], d.X[j], d.Words, s)
			f.dist = append(f.dist, s)
			f.slopes = append(f.slopes, make([]float64, axes+1))
		}
	}
	for range axes {
		// Points of many axes lie farther apart.
		f.centre = append(f.centre, math.Log(p.Length*math.Sqrt(float64(axes))))
		f.width = append(f.width, p.LengthSD)
	}
	f.centre = append(f.centre, math.Log(p.Sum/(1-p.Sum)), math.Log(p.Noise))
	f.width = append(f.width, p.SumSD, p.NoiseSD)
	return f
}

func (f *fitter) hyper(x []float64) hyper {
	axes := len(f.Words)
	h := hyper{length: make([]float64, axes)}
	for a := range axes {
		h.length[a] = math.Exp(x[a])
	}
	h.sum = 1 / (1 + math.Exp(-x[axes]))
	h.noise = math.Exp(x[axes+1])
	return h
}

// jitter keeps the covariance of equal points invertible.
const jitter = 1e-9

// factor builds the covariance relative to the signal and factors it; slopes, where not
// nil, receive its derivatives pair by pair.
func (f *fitter) factor(h hyper, slopes [][]float64) (mat.Cholesky, bool) {
	n := len(f.y)
	c := mat.NewSymDense(n, nil)
	pair := 0
	for i := range n {
		for j := range i {
			var s []float64
			if slopes != nil {
				s = slopes[pair]
			}
			c.SetSym(i, j, h.correlation(f.dist[pair], s)+f.trend(i, j))
			pair++
		}
		c.SetSym(i, i, 1+f.trend(i, i)+h.noise+jitter)
	}
	var chol mat.Cholesky
	return chol, chol.Factorize(c)
}

// trend is what two points covary because nobody knows how far to believe what was
// expected.
func (f *fitter) trend(i, j int) float64 {
	if f.Mean == nil {
		return 0
	}
	return f.weight * f.Mean[i] * f.Mean[j]
}

// solve finds the mean by generalised least squares and the variance of the signal.
func (f *fitter) solve(chol *mat.Cholesky) (alpha, ones *mat.VecDense, mean, signal float64) {
	n := len(f.y)
	y, one := mat.NewVecDense(n, f.y), mat.NewVecDense(n, nil)
	for i := range n {
		one.SetVec(i, 1)
	}
	alpha, ones = mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	_ = chol.SolveVecTo(ones, one) // it was factored
	_ = chol.SolveVecTo(alpha, y)
	mean = mat.Dot(one, alpha) / mat.Dot(one, ones)
	alpha.AddScaledVec(alpha, -mean, ones)
	k := f.prior.SignalCount
	signal = (max(mat.Dot(y, alpha), 0) + k*f.spread) / (float64(n) + k)
	return alpha, ones, mean, signal
}

// evaluation is what negative says of one x.
type evaluation struct {
	x, slope []float64
	value    float64
}

// at remembers the last x: the optimiser asks for the value and the slope one by one.
func (f *fitter) at(x []float64) evaluation {
	if !slices.Equal(x, f.last.x) {
		f.last = evaluation{x: slices.Clone(x), slope: make([]float64, len(x))}
		f.last.value = f.negative(x, f.last.slope)
	}
	return f.last
}

// negative is the negative logarithm of the posterior of the parameters x, the mean and
// the signal's variance put at their best; grad receives its gradient.
func (f *fitter) negative(x, grad []float64) float64 {
	h := f.hyper(x)
	n, axes := len(f.y), len(f.Words)
	chol, ok := f.factor(h, f.slopes)
	if !ok {
		return math.Inf(1)
	}
	alpha, _, _, signal := f.solve(&chol)
	total := 0.5*(float64(n)+f.prior.SignalCount)*math.Log(signal) + 0.5*chol.LogDet()
	for i, v := range x {
		z := (v - f.centre[i]) / f.width[i]
		total += 0.5 * z * z
		grad[i] = z / f.width[i]
	}
	var inverse mat.SymDense
	if err := chol.InverseTo(&inverse); err != nil {
		return total
	}
	pair := 0
	for i := range n {
		for j := range i {
			w := inverse.At(i, j) - alpha.AtVec(i)*alpha.AtVec(j)/signal
			slopes := f.slopes[pair]
			for a := range axes {
				grad[a] += w * slopes[a]
			}
			grad[axes] += w * slopes[axes] * h.sum * (1 - h.sum)
			pair++
		}
		grad[axes+1] += 0.5 * h.noise * (inverse.At(i, i) - alpha.AtVec(i)*alpha.AtVec(i)/signal)
	}
	return total
}

func (f *fitter) model(x []float64) (*Model, error) {
	m := &Model{data: f.Data, hyper: f.hyper(x), weight: f.weight}
	var ok bool
	if m.chol, ok = f.factor(m.hyper, nil); !ok {
		return nil, fmt.Errorf("%w: the covariance of %d points is singular", ErrInput, len(f.y))
	}
	m.alpha, m.ones, m.mean, m.signal = f.solve(&m.chol)
	m.mean += f.offset
	return m, nil
}
