package gauss

import (
	"errors"
	"fmt"
	"math"
)

// ErrInput marks data that no process can be fitted to.
var ErrInput = errors.New("gaussian process")

// Prior says what is believed about the covariance before any data. The defaults are
// round numbers: over recorded runs lengths from half to twice, other widths, and any
// share of the sum change little; only ten times the noise is clearly worse.
type Prior struct {
	Length      float64 // median length scale, in units of the scaled axis, for one axis
	LengthSD    float64 // of its logarithm
	Sum         float64 // median share of the sum over axes, above 0 and below 1
	SumSD       float64 // of its logit
	Noise       float64 // median variance of the noise, relative to the signal's
	NoiseSD     float64 // of its logarithm
	Signal      float64 // standard deviation of the signal, in units of the outcome; 0: the data's own
	SignalCount float64 // how many observations the belief in Signal counts as
	TrendSD     float64 // of the factor, 1 in the mean, by which what was expected has to be stretched
}

// DefaultPrior is the belief of a search that knows nothing of its job.
func DefaultPrior() Prior {
	return Prior{Length: 0.7, LengthSD: 0.7, Sum: 0.5, SumSD: 1.5, Noise: 0.01, NoiseSD: 1.5, SignalCount: 2, TrendSD: 0.3}
}

// Data are observations. X are points whose axes span about 0 to 1, or the index of a
// word; Y is what is minimised, in logarithms where it is a ratio; Mean, where not nil,
// is what was expected at each point before.
type Data struct {
	X     [][]float64
	Y     []float64
	Words []bool // by axis
	Mean  []float64
}

func (d Data) check() error {
	if len(d.X) == 0 || len(d.X) != len(d.Y) || d.Mean != nil && len(d.Mean) != len(d.Y) {
		return fmt.Errorf("%w: %d points, %d values, %d means: want as many of each, and one at least", ErrInput, len(d.X), len(d.Y), len(d.Mean))
	}
	for i, x := range d.X {
		if len(x) != len(d.Words) {
			return fmt.Errorf("%w: point %d has %d coordinates, want %d", ErrInput, i, len(x), len(d.Words))
		}
		if bad := math.IsNaN(d.Y[i]) || math.IsInf(d.Y[i], 0); bad {
			return fmt.Errorf("%w: value %d is %g", ErrInput, i, d.Y[i])
		}
	}
	return nil
}

// least is the variance of what does not vary.
const least = 1e-12

func variance(y []float64) float64 {
	m, v := 0.0, 0.0
	for _, x := range y {
		m += x / float64(len(y))
	}
	for _, x := range y {
		v += (x - m) * (x - m) / float64(max(len(y)-1, 1))
	}
	return max(v, least)
}
