package speed

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

// ErrSamples marks measurements that no model can be made of.
var ErrSamples = errors.New("invalid samples")

// Sample is what was measured under one setting.
type Sample struct {
	Settings tuning.Settings
	Seconds  float64 // of a step, above 0; of several measurements their mean
	Failed   bool    // the job could not run under it: it is taken for want of memory
}

// Estimate is the forecast of a step.
type Estimate struct {
	Seconds  float64
	Measured bool // Seconds is a measurement
	Fails    bool // the job is expected to fail, and Seconds says nothing
}

// What the parts of a step leave over of ln(seconds) is a level, a slope along each axis that
// no part speaks of, bends along each axis and of all together, and the noise of a
// measurement. The numbers are round and were chosen on recordings of five sources.
const (
	levelSD = 1.0
	slopeSD = 0.5 // per e-fold of a number, or of a word
	bendSD  = 0.25
	span    = 1.5 // how far a bend reaches, in e-folds
	noiseSD = 0.03
	ridge   = 0.05 // by which all parts but the constant are held back, and those that the samples cannot tell apart share what they explain
	atLeast = 0.05 // of the shortest step measured: where no part speaks of a setting, it is no step of no time
)

// Model is what samples taught about a space.
type Model struct {
	space    *Space
	measured map[int]float64 // seconds by setting
	failed   map[int]bool
	ceiling  float64 // memory that is too little; 0: none was

	seen    []int // of the samples that ran, by setting
	weights []float64
	least   float64 // seconds that no part's absence goes below
	level   float64
	left    mat.VecDense // what the process makes of what the parts leave over
}

// Fit makes a model of samples, all of settings in the space, at least one of which ran.
func (s *Space) Fit(samples []Sample) (*Model, error) {
	m := &Model{space: s, measured: map[int]float64{}, failed: map[int]bool{}, least: math.Inf(1)}
	for _, x := range samples {
		i, ok := s.index[x.Settings.Key()]
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %s is not in the space", ErrSamples, x.Settings)
		case x.Failed:
			m.failed[i] = true
			m.ceiling = max(m.ceiling, s.memory[i])
		case !(x.Seconds > 0) || math.IsInf(x.Seconds, 0):
			return nil, fmt.Errorf("%w: %g seconds under %s: want more than 0", ErrSamples, x.Seconds, x.Settings)
		default:
			if _, again := m.measured[i]; !again {
				m.seen = append(m.seen, i)
			}
			m.measured[i] = x.Seconds
		}
	}
	n := len(m.seen)
	if n == 0 {
		return nil, fmt.Errorf("%w: none of %d ran", ErrSamples, len(samples))
	}
	var rows [][]float64
	for _, i := range m.seen {
		row := make([]float64, len(s.parts[i]))
		rows = append(rows, floats.ScaleTo(row, 1/m.measured[i], s.parts[i])) // errors are relative
		m.least = min(m.least, atLeast*m.measured[i])
	}
	m.weights = share(rows)
	left := make([]float64, n)
	cov := mat.NewSymDense(n, nil)
	for i, at := range m.seen {
		left[i] = math.Log(m.measured[at] / m.trend(at))
		for j, other := range m.seen[:i+1] {
			cov.SetSym(i, j, s.alike(at, other))
		}
		cov.SetSym(i, i, cov.At(i, i)+noiseSD*noiseSD)
	}
	m.level = stat.Mean(left, nil)
	floats.AddConst(-m.level, left)
	var chol mat.Cholesky
	if !chol.Factorize(cov) {
		return nil, fmt.Errorf("%w: %d of them cannot be told apart", ErrSamples, n)
	}
	_ = chol.SolveVecTo(&m.left, mat.NewVecDense(n, left)) // its condition is bounded by the noise
	return m, nil
}

// share finds weights of columns, none below 0, that bring the sum of each row nearest to 1,
// one column at a time until they settle: non-negative least squares with a ridge.
func share(rows [][]float64) []float64 {
	const sweeps = 2000
	weights, length := make([]float64, len(rows[0])), make([]float64, len(rows[0]))
	left := make([]float64, len(rows))
	for i, r := range rows {
		left[i] = 1
		for j, x := range r {
			length[j] = math.Hypot(length[j], x)
		}
	}
	for range sweeps {
		moved := 0.0
		for j, l := range length {
			if l == 0 {
				continue
			}
			r := ridge
			if j == 0 { // the constant comes first
				r = 0
			}
			slope := -r * weights[j] * l
			for i, r := range rows {
				slope += left[i] * r[j] / l
			}
			step := max(slope/(1+r)/l, -weights[j])
			weights[j] += step
			for i, r := range rows {
				left[i] -= step * r[j]
			}
			moved = max(moved, math.Abs(step*l))
		}
		if moved < 1e-9 {
			break
		}
	}
	return weights
}

// trend is the seconds by the parts alone.
func (m *Model) trend(i int) float64 { return max(floats.Dot(m.space.parts[i], m.weights), m.least) }

// alike is the covariance of what is left over at two settings.
func (s *Space) alike(a, b int) float64 {
	v, squares := levelSD*levelSD, 0.0
	for j, ax := range s.axes {
		x, y := ax.width*(s.at[a][j]-ax.middle), ax.width*(s.at[b][j]-ax.middle)
		squares += (x - y) * (x - y)
		v += bendSD * bendSD * matern(math.Abs(x-y)/span)
		if !ax.law {
			v += slopeSD * slopeSD * x * y
		}
	}
	return v + bendSD*bendSD*matern(math.Sqrt(squares)/span)
}

// matern is the Matérn 3/2 correlation at distance r.
func matern(r float64) float64 {
	r *= math.Sqrt(3)
	return (1 + r) * math.Exp(-r)
}

// At forecasts a setting of the space; false: it is not in it.
func (m *Model) At(settings tuning.Settings) (Estimate, bool) {
	i, ok := m.space.index[settings.Key()]
	if !ok {
		return Estimate{}, false
	}
	return m.at(i), true
}

func (m *Model) at(i int) Estimate {
	if v, ok := m.measured[i]; ok {
		return Estimate{Seconds: v, Measured: true}
	}
	sum := m.level
	for j, at := range m.seen {
		sum += m.space.alike(i, at) * m.left.AtVec(j)
	}
	memory := m.space.memory[i]
	return Estimate{Seconds: m.trend(i) * math.Exp(sum), Fails: m.failed[i] || memory > 0 && memory <= m.ceiling}
}
