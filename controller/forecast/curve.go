package forecast

import (
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// Direction is where a curve should go.
type Direction string

// The directions.
const (
	Min Direction = "min" // a loss
	Max Direction = "max" // a quality
)

// Curve is what was seen of a job, an epoch after the other.
type Curve struct {
	Epochs []float64 // rising
	Values []float64 // after each epoch, finite
}

// Seen is the curve after a share of its values. False: the share is none of them, or all.
func (c Curve) Seen(share float64) (Curve, bool) {
	n := int(math.Round(share * float64(len(c.Values))))
	if n < 1 || n >= len(c.Values) {
		return Curve{}, false
	}
	return Curve{c.Epochs[:n], c.Values[:n]}, true
}

// Bound is the best value that there usually is: a loss is not below 0 and a quality not
// above 1. A curve that was beyond it is forecast without.
func Bound(d Direction) *float64 {
	if d == Max {
		return new(1.0)
	}
	return new(0.0)
}

// Options is what is known about a curve besides its values.
type Options struct {
	Direction Direction
	Total     float64   // the epoch at which the job ends
	Best      *float64  // the best value that there can be, such as 0 for a loss; nil: not known
	Changes   []float64 // epochs from which on another learning rate holds, where the job declares them
	Lessons   []Lesson  // of ended jobs of the same kind and measure, oldest first
}

// fewest is the number of epochs that a forecast needs.
const fewest = 3

// tells reports whether enough epochs were seen for a forecast, all numbers are finite, epochs
// rise, and the job is not at its end.
func (c Curve) tells(o Options) bool {
	n := len(c.Values)
	if n < fewest || len(c.Epochs) != n || !tuning.Finite(o.Total) || o.Total <= c.Epochs[n-1] {
		return false
	}
	for i, v := range c.Values {
		if !tuning.Finite(v) || !tuning.Finite(c.Epochs[i]) || i > 0 && !(c.Epochs[i] > c.Epochs[i-1]) {
			return false
		}
	}
	return true
}

// unit is the scale in which a curve is fitted: 0 is its last value, 1 the width of its
// range, and less is better.
type unit struct {
	last, width, sign float64
}

func unitOf(values []float64, d Direction) unit {
	u := unit{last: values[len(values)-1], sign: 1}
	if d == Max {
		u.sign = -1
	}
	lo, hi := slices.Min(values), slices.Max(values)
	u.width = hi - lo
	if !(u.width > 1e-12*max(math.Abs(lo), math.Abs(hi))) || !tuning.Finite(u.width) {
		u.width = max(math.Abs(u.last), math.SmallestNonzeroFloat32)
	}
	return u
}

func (u unit) in(v float64) float64  { return u.sign * (v - u.last) / u.width }
func (u unit) out(z float64) float64 { return u.last + u.sign*z*u.width }

// floor is the best value in units; minus infinity where none is known, or where the
// curve has been better than that.
func (u unit) floor(best *float64, z []float64) float64 {
	if best == nil || !tuning.Finite(*best) {
		return math.Inf(-1)
	}
	if f := u.in(*best); slices.Min(z) >= f {
		return f
	}
	return math.Inf(-1)
}

// How far out an epoch must be to be odd, and a fall to be a change of the learning
// rate, in standard deviations of the noise and against what went before.
const (
	oddNoise    = 6
	oddRange    = 0.25 // and this share of the range of the curve
	fallNoise   = 5
	fallBefore  = 4 // times the largest fall of the epochs before
	fallRange   = 0.05
	fallHistory = 5 // epochs before that are looked at
)

// noiseOf is the standard deviation of the jitter from epoch to epoch, from second
// differences, so that a trend does not count; half of them may be odd.
func noiseOf(z []float64) float64 {
	if len(z) < 3 {
		return 0
	}
	d := make([]float64, 0, len(z)-2)
	for i := 2; i < len(z); i++ {
		d = append(d, math.Abs(z[i]-2*z[i-1]+z[i-2]))
	}
	return tuning.Quantile(d, 0.5) / (0.6745 * math.Sqrt(6))
}

// mend replaces single epochs that lie far outside both neighbours by the mean of
// those. The newest is odd while it is worse than all before by half of their range.
func mend(z []float64) []float64 {
	out := slices.Clone(z)
	n := len(z)
	if n < 5 {
		return out
	}
	noise := noiseOf(z)
	for i := 1; i < n-1; i++ {
		lo, hi := min(out[i-1], z[i+1]), max(out[i-1], z[i+1])
		far := max(lo-z[i], z[i]-hi)
		if far > oddNoise*noise && far > 2*(hi-lo) && far > oddRange*width(slices.Concat(z[:i], z[i+1:])) {
			out[i] = (out[i-1] + z[i+1]) / 2
		}
	}
	if before := out[:n-1]; z[n-1] > slices.Max(before)+max(0.5*width(before), oddNoise*noise) {
		out[n-1] = out[n-2]
	}
	return out
}

func width(z []float64) float64 { return slices.Max(z) - slices.Min(z) }

// segment is where the newest piece of a curve begins: at the last epoch from which on
// another learning rate holds, as declared, else as seen in a lasting fall that is clearly
// larger than the noise and the falls before it.
func segment(epochs, z []float64, changes []float64) int {
	if len(changes) > 0 {
		start := len(epochs) - 1
		for start > 0 && !slices.ContainsFunc(changes, func(c float64) bool { return epochs[start-1] < c && c <= epochs[start] }) {
			start--
		}
		return start
	}
	if len(z) < fallHistory+3 {
		return 0
	}
	noise := noiseOf(z)
	start := 0
	for i := fallHistory + 1; i < len(z)-1; i++ {
		fall := z[i-1] - z[i]
		largest := 0.0
		for j := i - fallHistory; j < i; j++ {
			largest = max(largest, math.Abs(z[j-1]-z[j]))
		}
		if fall > fallNoise*noise && fall > fallBefore*largest && fall > fallRange*width(z[:i+1]) && slices.Max(z[i:]) < z[i-1]-fall/2 {
			start = i
		}
	}
	return start
}
