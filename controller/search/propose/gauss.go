package propose

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/tuning"
)

// ErrInput marks data that no process can be fitted to.
var ErrInput = errors.New("gaussian process")

// kernel mixes a Matérn 5/2 over all axes and the mean of one over each axis, which carries what
// one knob does over to all values of the others.
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

// data are outcomes at points, and what each of some sources expected there; their sum counts.
type data struct {
	x        [][]float64
	y        []float64
	expected [][]float64 // by point; nil: 0
	doubt    float64     // standard deviation of the factor, 1 on average, that a source must be stretched by
}

func (c *Candidates) data(at []int, y []float64, expected [][]float64, doubt float64) data {
	d := data{y: y, doubt: doubt}
	for _, i := range at {
		d.x, d.expected = append(d.x, c.Points[i]), append(d.expected, expected[i])
	}
	return d
}

// process is a Gaussian process that was fitted to data.
type process struct {
	*Candidates
	kernel
	data
	trend  float64 // variance of the factor of what was expected, relative to the signal's
	chol   mat.Cholesky
	inv    mat.SymDense  // C⁻¹, where the process is fitted
	alpha  *mat.VecDense // C⁻¹ (y - mean)
	ones   *mat.VecDense // C⁻¹ 1
	mean   float64
	signal float64 // variance
}

// What is believed before any data. Half or twice as much changes little over recorded runs.
const (
	usualLength = 0.7 // for one axis; points of many axes lie farther apart
	lengthSD    = 0.7 // of its logarithm
	usualNoise  = 0.01
	noiseSD     = 1.5 // of its logarithm
	sumSD       = 1.5 // of the logit of the share of the sum, about 0
	signalCount = 2   // how many outcomes the belief counts for that the signal varies as they do
	trendSD     = 0.3 // of the factor, 1 on average, that the expectation must be stretched by
	fine        = 0.2 // step of a parameter, in standard deviations of what is believed
	jitter      = 1e-9
)

// fit finds the most likely covariance, by steps along one parameter at a time. The noise is usual
// in the median, give or take sd of its logarithm. No step is smaller than finest.
func (c *Candidates) fit(d data, usual, sd, finest float64) (*process, error) {
	if len(d.y) == 0 || len(d.x) != len(d.y) {
		return nil, fmt.Errorf("%w: %d points, %d values: want as many of each, and one at least", ErrInput, len(d.x), len(d.y))
	}
	for i, y := range d.y {
		if len(d.x[i]) != len(c.Axes) || math.IsNaN(y) || math.IsInf(y, 0) {
			return nil, fmt.Errorf("%w: value %d at point %v is %g", ErrInput, i, d.x[i], y)
		}
	}
	if d.expected == nil {
		d.expected = make([][]float64, len(d.y))
	}
	axes := len(c.Axes)
	pairs := c.pairs(d.x)
	of := func(z []float64) kernel {
		k := kernel{sum: 1 / (1 + math.Exp(-z[axes]*sumSD)), noise: usual * math.Exp(z[axes+1]*sd)}
		for _, v := range z[:axes] {
			k.lengths = append(k.lengths, usualLength*math.Sqrt(float64(axes))*math.Exp(v*lengthSD))
		}
		return k
	}
	p := &process{Candidates: c, data: d}
	try := func(z []float64) float64 {
		p.kernel = of(z)
		return p.condition(pairs.covariance(p.kernel)) - floats.Dot(z, z)/2
	}
	z := make([]float64, axes+2) // in standard deviations of what is believed
	most := try(z)
	for step := 1.0; step > finest; step /= 2 {
		for moved := true; moved; {
			moved = false
			for i := range z {
				for _, by := range []float64{-step, step} {
					z[i] += by
					if likely := try(z); likely > most+1e-9 {
						most, moved = likely, true
					} else {
						z[i] -= by
					}
				}
			}
		}
	}
	try(z)
	if math.IsInf(most, -1) {
		return nil, fmt.Errorf("%w: the covariance of %d points is singular", ErrInput, len(d.y))
	}
	_ = p.chol.InverseTo(&p.inv) // it was factored
	return p, nil
}

// pairs are how far apart points lie.
type pairs struct {
	n     int
	apart [][]float64 // by axis, of the points (1,0), (2,0), (2,1), (3,0), ...
	near  [][]float64 // their Matérn kernel at the last lengths
	at    []float64   // the last lengths
}

func (c *Candidates) pairs(x [][]float64) *pairs {
	p := &pairs{n: len(x), at: make([]float64, len(c.Axes))}
	for a := range c.Axes {
		var apart []float64
		for i := range x {
			for j := range i {
				apart = append(apart, c.apart(a, x[i], x[j]))
			}
		}
		p.apart, p.near = append(p.apart, apart), append(p.near, make([]float64, len(apart)))
	}
	return p
}

// covariance is that of the points, without noise. What did not change since the last call is not
// computed again.
func (p *pairs) covariance(k kernel) *mat.SymDense {
	m := len(p.near)
	for a, length := range k.lengths {
		if p.at[a] == length {
			continue
		}
		p.at[a] = length
		for i, d := range p.apart[a] {
			p.near[a][i] = matern(d / length)
		}
	}
	out := mat.NewSymDense(p.n, nil)
	at := 0
	for i := range p.n {
		out.SetSym(i, i, 1)
		for j := range i {
			squares, sum := 0.0, 0.0
			for a := range m {
				u := p.apart[a][at] / k.lengths[a]
				squares += u * u
				sum += p.near[a][at]
			}
			out.SetSym(i, j, (1-k.sum)*matern(math.Sqrt(squares))+k.sum*sum/float64(max(m, 1)))
			at++
		}
	}
	return out
}

// condition returns the logarithm of how likely the data were. The mean is that of generalised
// least squares.
func (p *process) condition(c *mat.SymDense) float64 {
	n := len(p.y)
	v, one := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for i, y := range p.y {
		v.SetVec(i, y-floats.Sum(p.expected[i]))
		one.SetVec(i, 1)
	}
	usual, spread := stat.MeanVariance(v.RawVector().Data, nil)
	if !(spread > vanishing) {
		spread = vanishing
	}
	v.AddScaledVec(v, -usual, one) // so that the unit of the outcome costs no digits
	p.trend = p.doubt * p.doubt / spread
	for i := range n {
		for j := range i + 1 {
			c.SetSym(i, j, c.At(i, j)+p.trend*floats.Dot(p.expected[i], p.expected[j]))
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

// vanishing is the variance of what does not vary.
const vanishing = 1e-12

// Expect is what outcomes at some candidates let expect of each, where outcomes hardly vary.
func (c *Candidates) Expect(at []int, y []float64) ([]float64, error) {
	const little = 3e-4
	return c.expect(c.data(at, y, make([][]float64, len(c.Points)), 0), c.Points, little, 1)
}

func (c *Candidates) expect(d data, points [][]float64, usual, sd float64) ([]float64, error) {
	p, err := c.fit(d, usual, sd, fine)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(points))
	for i, x := range points {
		out[i], _ = p.predict(x, nil)
	}
	return out, nil
}

// predict is the expected outcome and its standard deviation, that of the noise of a run left out.
func (p *process) predict(x, expected []float64) (mean, sd float64) {
	n := len(p.x)
	k, v := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
	for i, q := range p.x {
		k.SetVec(i, p.at(x, q)+p.trend*floats.Dot(p.expected[i], expected))
	}
	v.MulVec(&p.inv, k)
	rest := 1 - mat.Dot(k, p.ones)
	variance := 1 + p.trend*floats.Dot(expected, expected) - mat.Dot(k, v) + rest*rest/mat.Sum(p.ones) // the last: the mean is estimated
	return floats.Sum(expected) + p.mean + mat.Dot(k, p.alpha), math.Sqrt(max(variance, 0) * p.signal)
}

// Improvement is the expected value of what lies below 0 of a normal variable.
func Improvement(mean, sd float64) float64 {
	if !(sd > 0) {
		return max(-mean, 0)
	}
	z := -mean / sd
	return sd * (z*distuv.UnitNormal.CDF(z) + distuv.UnitNormal.Prob(z))
}

// logImprovement also orders what is too small for a number.
func logImprovement(mean, sd, best float64) float64 {
	if v := Improvement(mean-best, sd); v > 0 {
		return math.Log(v)
	}
	return math.Log(math.SmallestNonzeroFloat64) - (mean-best)/max(sd, vanishing)
}

// Past is what an earlier job measured. Losses are logarithms of the outcome; a failed run
// is left out or put at the worst.
type Past struct {
	Settings []tuning.Settings
	Losses   []float64
}

// memory is how many settings a history is made of, spread evenly by the golden ratio.
const memory = 100

// History is the outcome that earlier jobs suggest for each candidate, relative to each job's own
// mean and in units of its own spread. It is nil where no earlier job has two different outcomes.
func (c *Candidates) History(past []Past) ([]float64, error) {
	out, spread, err := c.joint(past, c.Points)
	floats.Scale(spread, out)
	return out, err
}

// joint is what the standard scores of jobs let expect at points, nil without a job, and the mean spread of
// their losses.
func (c *Candidates) joint(jobs []Past, points [][]float64) ([]float64, float64, error) {
	x, y, spread := c.pool(jobs)
	if len(y) == 0 {
		return nil, 0, nil
	}
	if n := len(y); n > memory {
		all, scores := x, y
		x, y = nil, nil
		for i := range memory {
			_, part := math.Modf(float64(i) * math.Phi)
			at := int(part * float64(n))
			x, y = append(x, all[at]), append(y, scores[at])
		}
	}
	const differ = 0.3 // the noise between jobs
	out, err := c.expect(data{x: x, y: y}, points, differ, 1)
	return out, spread, err
}

// pool joins the jobs' standard scores, and is the mean of their spreads.
func (c *Candidates) pool(past []Past) (x [][]float64, y []float64, spread float64) {
	jobs := 0.0
	at := map[string]int{}
	var count []float64
	for _, job := range past {
		mean, sd := stat.MeanStdDev(job.Losses, nil)
		if !(sd > math.Sqrt(vanishing)) {
			continue
		}
		jobs++
		spread += (sd - spread) / jobs
		for i, p := range c.Of(job.Settings) {
			key := fmt.Sprint(p)
			k, ok := at[key]
			if !ok {
				k, at[key] = len(y), len(y)
				x, y, count = append(x, p), append(y, 0), append(count, 0)
			}
			count[k]++
			y[k] += ((job.Losses[i]-mean)/sd - y[k]) / count[k]
		}
	}
	return x, y, spread
}
