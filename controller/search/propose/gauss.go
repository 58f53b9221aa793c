package propose

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// ErrInput marks data that no process can be fitted to.
var ErrInput = errors.New("gaussian process")

// kernel is the covariance of two points relative to the signal's variance: a mixture of a
// Matérn 5/2 over all axes and the mean of one over each axis. The latter carries what one
// knob does over to all values of the others.
type kernel struct {
	lengths []float64 // of each axis, in units of the scaled axis
	sum     float64   // share of the mean over axes
	noise   float64   // variance of the noise
}

// matern is the Matérn 5/2 correlation at distance r.
func matern(r float64) float64 {
	r *= math.Sqrt(5)
	return (1 + r + r*r/3) * math.Exp(-r)
}

// at is the covariance of two points without the noise.
func (p *process) at(x, y []float64) float64 {
	squares, sum := 0.0, 0.0
	for a, length := range p.lengths {
		u := p.apart(a, x, y) / length
		squares += u * u
		sum += matern(u)
	}
	return (1-p.sum)*matern(math.Sqrt(squares)) + p.sum*sum/float64(max(len(p.lengths), 1))
}

// data are outcomes at points, and what was expected there: nothing where it is nil.
type data struct {
	x           [][]float64
	y, expected []float64
}

// process is a Gaussian process that was fitted to data.
type process struct {
	Space
	kernel
	data
	trend  float64 // variance of the factor of what was expected, relative to the signal's
	chol   mat.Cholesky
	alpha  *mat.VecDense // C⁻¹ (y - mean)
	ones   *mat.VecDense // C⁻¹ 1
	mean   float64
	signal float64 // variance
}

// What is believed of the covariance before any data. The centres are round numbers: over
// recorded runs half or twice as much changes little.
const (
	usualLength = 0.7 // for one axis; points of many axes lie farther apart
	lengthSD    = 0.7 // of its logarithm
	usualNoise  = 0.01
	noiseSD     = 1.5 // of its logarithm
	sumSD       = 1.5 // of the logit of the share of the sum, about 0
	signalCount = 2   // how many outcomes the belief counts for that the signal varies as they do
	trendSD     = 0.3 // of the factor, 1 in the mean, by which what was expected has to be stretched
	finest      = 0.2 // step of a parameter, in standard deviations of what is believed
	jitter      = 1e-9
)

// fit finds the covariance that the data and what is believed make most likely, by steps
// along one parameter at a time. The noise is usual in the median, give or take sd of its
// logarithm.
func (s Space) fit(d data, usual, sd float64) (*process, error) {
	if len(d.y) == 0 || len(d.x) != len(d.y) {
		return nil, fmt.Errorf("%w: %d points, %d values: want as many of each, and one at least", ErrInput, len(d.x), len(d.y))
	}
	for i, y := range d.y {
		if len(d.x[i]) != len(s.Axes) || math.IsNaN(y) || math.IsInf(y, 0) {
			return nil, fmt.Errorf("%w: value %d at point %v is %g", ErrInput, i, d.x[i], y)
		}
	}
	axes := len(s.Axes)
	try := func(z []float64) (*process, float64) {
		p := &process{Space: s, data: d, kernel: kernel{sum: 1 / (1 + math.Exp(-z[axes]*sumSD)), noise: usual * math.Exp(z[axes+1]*sd)}}
		for _, v := range z[:axes] {
			p.lengths = append(p.lengths, usualLength*math.Sqrt(float64(axes))*math.Exp(v*lengthSD))
		}
		return p, p.condition() - floats.Dot(z, z)/2
	}
	z := make([]float64, axes+2) // in standard deviations of what is believed
	best, most := try(z)
	for step := 1.0; step > finest; step /= 2 {
		for moved := true; moved; {
			moved = false
			for i := range z {
				for _, by := range []float64{-step, step} {
					z[i] += by
					if p, likely := try(z); likely > most+1e-9 {
						best, most, moved = p, likely, true
					} else {
						z[i] -= by
					}
				}
			}
		}
	}
	if math.IsInf(most, -1) {
		return nil, fmt.Errorf("%w: the covariance of %d points is singular", ErrInput, len(d.y))
	}
	return best, nil
}

// condition joins the process with the data, and is the logarithm of how likely they were.
// The mean is that of generalised least squares.
func (p *process) condition() float64 {
	n := len(p.y)
	v, one := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for i, y := range p.y {
		v.SetVec(i, y-p.before(i))
		one.SetVec(i, 1)
	}
	usual, spread := stat.MeanVariance(v.RawVector().Data, nil)
	if !(spread > vanishing) {
		spread = vanishing
	}
	v.AddScaledVec(v, -usual, one) // so that the unit of the outcome costs no digits
	p.trend = trendSD * trendSD / spread
	c := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			c.SetSym(i, j, p.at(p.x[i], p.x[j])+p.trend*p.before(i)*p.before(j))
		}
		c.SetSym(i, i, c.At(i, i)+p.noise+jitter)
	}
	if !p.chol.Factorize(c) {
		return math.Inf(-1)
	}
	p.alpha, p.ones = mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	_ = p.chol.SolveVecTo(p.ones, one) // it was factored
	_ = p.chol.SolveVecTo(p.alpha, v)
	mean := mat.Sum(p.alpha) / mat.Sum(p.ones)
	p.alpha.AddScaledVec(p.alpha, -mean, p.ones)
	p.mean = mean + usual
	p.signal = (max(mat.Dot(v, p.alpha), 0) + signalCount*spread) / (float64(n) + signalCount)
	return -0.5*(float64(n)+signalCount)*math.Log(p.signal) - 0.5*p.chol.LogDet()
}

// before is what was expected where an outcome was measured.
func (d data) before(i int) float64 {
	if d.expected == nil {
		return 0
	}
	return d.expected[i]
}

// vanishing is the variance of what does not vary.
const vanishing = 1e-12

// Expect is what outcomes at some candidates let expect of each, where a second outcome of
// one candidate would be nearly the same.
func (c *Candidates) Expect(at []int, y []float64) ([]float64, error) {
	const little = 3e-4
	d := data{y: y}
	for _, i := range at {
		d.x = append(d.x, c.Points[i])
	}
	return c.expect(d, little, 1)
}

// expect is the expected outcome of each candidate, see fit.
func (c *Candidates) expect(d data, usual, sd float64) ([]float64, error) {
	p, err := c.fit(d, usual, sd)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(c.Points))
	for i, x := range c.Points {
		out[i], _ = p.predict(x, 0)
	}
	return out, nil
}

// predict is the expected outcome at a point and its standard deviation, that of the noise
// of a run left out. expected is what was expected there before, 0 where the data tell none.
func (p *process) predict(x []float64, expected float64) (mean, sd float64) {
	n := len(p.x)
	k, v := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for i, q := range p.x {
		k.SetVec(i, p.at(x, q)+p.trend*p.before(i)*expected)
	}
	_ = p.chol.SolveVecTo(v, k) // it was factored
	rest := 1 - mat.Dot(k, p.ones)
	variance := 1 + p.trend*expected*expected - mat.Dot(k, v) + rest*rest/mat.Sum(p.ones) // the last: the mean is estimated
	return expected + p.mean + mat.Dot(k, p.alpha), math.Sqrt(max(variance, 0) * p.signal)
}
