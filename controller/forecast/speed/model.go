package speed

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

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
	Seconds  float64 `json:"seconds"`
	SE       float64 `json:"se"`       // standard error of ln(Seconds); 0 where it was measured
	Measured bool    `json:"measured"` // Seconds is a measurement
	Fails    bool    `json:"fails"`    // the job is expected to fail, and Seconds says nothing
}

// What the parts leave over is a field over the settings: how large, how far it reaches
// in ranges of a knob, and how much of it is noise of a measurement. All of ln(seconds).
const (
	fieldSD  = 0.25
	fieldFar = 0.35
	noiseSD  = 0.06
	ridge    = 1e-4
	atLeast  = 0.05 // of the shortest step measured: where no part speaks of a setting, it is no step of no time
)

// Space is the settings that may be used, as the model sees them.
type Space struct {
	settings  []tuning.Settings
	points    []point
	at        [][]float64 // coordinates, each knob over the space from 0 to 1
	saturated []float64   // numbers of cores beyond which more may not help
	index     map[string]int
}

// NewSpace prepares settings for models; equal ones are one.
func NewSpace(settings []tuning.Settings) *Space {
	s := &Space{index: map[string]int{}}
	others := otherKnobs(settings)
	cores := map[float64]bool{}
	for _, x := range settings {
		if _, ok := s.index[x.Key()]; ok {
			continue
		}
		s.index[x.Key()] = len(s.settings)
		p := pointOf(x, others)
		s.settings, s.points, s.at = append(s.settings, x), append(s.points, p), append(s.at, p.coordinates())
		if p.cores > 0 {
			cores[p.cores] = true
		}
	}
	for c := range cores {
		s.saturated = append(s.saturated, c)
	}
	sortNumbers(s.saturated)
	s.rescale()
	return s
}

// rescale brings each coordinate to 0 to 1 over the space.
func (s *Space) rescale() {
	if len(s.at) == 0 {
		return
	}
	for j := range s.at[0] {
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, x := range s.at {
			lo, hi = min(lo, x[j]), max(hi, x[j])
		}
		for _, x := range s.at {
			if hi > lo {
				x[j] = (x[j] - lo) / (hi - lo)
			} else {
				x[j] = 0
			}
		}
	}
}

// Settings are those of the space, in their order.
func (s *Space) Settings() []tuning.Settings { return s.settings }

// Model is what samples taught about a space.
type Model struct {
	space    *Space
	seen     []int // of the samples that ran, by setting
	weights  []float64
	measured map[int]float64 // seconds by setting
	failed   map[int]bool
	ceiling  float64 // memory that is too little; 0: none was
	least    float64 // seconds that no part's absence goes below
	chol     mat.Cholesky
	alpha    *mat.VecDense
}

// Fit makes a model of samples, all of settings in the space, at least one of which ran.
func (s *Space) Fit(samples []Sample) (*Model, error) {
	m := &Model{space: s, measured: map[int]float64{}, failed: map[int]bool{}}
	for _, x := range samples {
		i, ok := s.index[x.Settings.Key()]
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %s is not in the space", ErrSamples, x.Settings)
		case x.Failed:
			m.failed[i] = true
			m.ceiling = max(m.ceiling, s.points[i].memory)
		case !(x.Seconds > 0) || math.IsInf(x.Seconds, 0):
			return nil, fmt.Errorf("%w: %g seconds under %s: want more than 0", ErrSamples, x.Seconds, x.Settings)
		default:
			if _, again := m.measured[i]; !again {
				m.seen = append(m.seen, i)
			}
			m.measured[i] = x.Seconds
		}
	}
	if len(m.seen) == 0 {
		return nil, fmt.Errorf("%w: none of %d ran", ErrSamples, len(samples))
	}
	m.fit()
	return m, nil
}

// fit finds the parts by relative errors, and the field of what they leave over.
func (m *Model) fit() {
	n := len(m.seen)
	rows, ones := make([][]float64, n), make([]float64, n)
	for i, at := range m.seen {
		rows[i] = m.space.points[at].parts(m.space.saturated)
		for j := range rows[i] {
			rows[i][j] /= m.measured[at]
		}
		ones[i] = 1
	}
	m.weights = nnls(rows, ones, ridge)
	m.least = math.Inf(1)
	for _, at := range m.seen {
		m.least = min(m.least, atLeast*m.measured[at])
	}
	left := make([]float64, n)
	cov := mat.NewSymDense(n, nil)
	for i, at := range m.seen {
		left[i] = math.Log(m.measured[at] / m.trend(at))
		for j, other := range m.seen[:i+1] {
			c := m.space.alike(at, other)
			if i == j {
				c += noiseSD * noiseSD
			}
			cov.SetSym(i, j, c)
		}
	}
	m.alpha = mat.NewVecDense(n, nil)
	if m.chol.Factorize(cov) {
		_ = m.chol.SolveVecTo(m.alpha, mat.NewVecDense(n, left)) // its condition is bounded by the noise
	}
}

// trend is the seconds by the parts alone.
func (m *Model) trend(at int) float64 {
	var v float64
	for j, x := range m.space.points[at].parts(m.space.saturated) {
		v += x * m.weights[j]
	}
	return max(v, m.least)
}

// alike is the covariance of what is left over at two settings (Matérn 3/2).
func (s *Space) alike(a, b int) float64 {
	d := math.Sqrt(3) * s.distance(a, b) / fieldFar
	return fieldSD * fieldSD * (1 + d) * math.Exp(-d)
}

func (s *Space) distance(a, b int) float64 {
	var d float64
	for j, x := range s.at[a] {
		d += (x - s.at[b][j]) * (x - s.at[b][j])
	}
	return math.Sqrt(d)
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
	k := mat.NewVecDense(len(m.seen), nil)
	for j, at := range m.seen {
		k.SetVec(j, m.space.alike(i, at))
	}
	var solved mat.VecDense
	_ = m.chol.SolveVecTo(&solved, k) // as in fit
	v := m.trend(i) * math.Exp(mat.Dot(k, m.alpha))
	rest := max(m.space.alike(i, i)-mat.Dot(k, &solved), 0)
	memory := m.space.points[i].memory
	return Estimate{
		Seconds: v, SE: math.Sqrt(rest),
		Fails: m.failed[i] || memory > 0 && memory <= m.ceiling,
	}
}
