package forecast

import (
	"math"
	"slices"
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
	Epochs  []float64 // rising
	Values  []float64 // after each epoch, finite
	Seconds []float64 // since the job began, at the end of each epoch; empty: not measured
}

// Seen is the curve after a share of its values. False: that is none of them, or all.
func (c Curve) Seen(share float64) (Curve, bool) {
	n := int(math.Round(share * float64(len(c.Values))))
	if n < 1 || n >= len(c.Values) {
		return Curve{}, false
	}
	c.Epochs, c.Values = c.Epochs[:n], c.Values[:n]
	if len(c.Seconds) > 0 {
		c.Seconds = c.Seconds[:min(n, len(c.Seconds))]
	}
	return c, true
}

// Bound is the best value that there can be of what goes in the direction, unless another one
// is given: a loss is not below 0 and a quality not above 1. A curve that was
// beyond it shows that it is none, and is forecast without.
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

// Unknown says why there is no forecast.
type Unknown string

// The reasons.
const (
	Known       Unknown = ""
	FewEpochs   Unknown = "few-epochs"   // fewer than three epochs were seen
	NoNumbers   Unknown = "no-numbers"   // a value, an epoch or the end is no finite number, or epochs do not rise
	NothingLeft Unknown = "nothing-left" // the job is at its end
	ChangeAhead Unknown = "change-ahead" // the learning rate will change before the epoch asked for
	Never       Unknown = "never"        // the forecast does not reach the target
)

// fewest is the number of epochs without which nothing is said.
const fewest = 3

func (c Curve) check(o Options) Unknown {
	n := len(c.Values)
	if len(c.Epochs) != n || len(c.Seconds) != 0 && len(c.Seconds) != n || !finite(o.Total) {
		return NoNumbers
	}
	for i, v := range c.Values {
		if !finite(v) || !finite(c.Epochs[i]) || i > 0 && !(c.Epochs[i] > c.Epochs[i-1]) {
			return NoNumbers
		}
		if len(c.Seconds) > 0 && (!finite(c.Seconds[i]) || i > 0 && c.Seconds[i] < c.Seconds[i-1]) {
			return NoNumbers
		}
	}
	switch {
	case n < fewest:
		return FewEpochs
	case o.Total <= c.Epochs[n-1]:
		return NothingLeft
	}
	return Known
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

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
	if !(u.width > 1e-12*max(math.Abs(lo), math.Abs(hi))) || !finite(u.width) {
		u.width = max(math.Abs(u.last), math.SmallestNonzeroFloat32)
	}
	return u
}

func (u unit) in(v float64) float64  { return u.sign * (v - u.last) / u.width }
func (u unit) out(z float64) float64 { return u.last + u.sign*z*u.width }

func (u unit) all(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = u.in(v)
	}
	return out
}

// floor is the best value in units; minus infinity where none is known, or where the
// curve has been better than that.
func (u unit) floor(best *float64, z []float64) float64 {
	if best == nil || !finite(*best) {
		return math.Inf(-1)
	}
	f := u.in(*best)
	if slices.Min(z) < f {
		return math.Inf(-1)
	}
	return f
}
