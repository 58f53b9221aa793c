package forecast

import (
	"math"
	"slices"
)

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
	return median(d) / (0.6745 * math.Sqrt(6))
}

// mend replaces single epochs that lie far outside both neighbours by the mean of
// those. The newest counts as odd while it is worse than all before by half of their
// range; the next epoch will tell.
func mend(z []float64) []float64 {
	out := slices.Clone(z)
	n := len(z)
	if n < 5 {
		return out
	}
	noise := noiseOf(z)
	after := tails(z)
	before := span{z[0], z[0]} // of the epochs before i
	for i := 1; i < n-1; i++ {
		lo, hi := min(out[i-1], z[i+1]), max(out[i-1], z[i+1])
		far := max(lo-z[i], z[i]-hi)
		others := before.join(after[i+1])
		if far > oddNoise*noise && far > oddRange*others.width() && far > 2*(hi-lo) {
			out[i] = (out[i-1] + z[i+1]) / 2
		}
		before = before.join(span{z[i], z[i]})
	}
	rest := spanOf(out[:n-1])
	if z[n-1] > rest.hi+max(0.5*rest.width(), oddNoise*noise) {
		out[n-1] = out[n-2]
	}
	return out
}

// segment is where the newest piece of a curve begins: at the last epoch from which on
// another learning rate holds, as declared, else as seen in a fall that stands out of
// the noise and of the falls before it, and that lasts.
func segment(epochs, z []float64, changes []float64) int {
	if len(changes) > 0 {
		start := 0
		for i, e := range epochs {
			for _, c := range changes {
				if e >= c && i > 0 && epochs[i-1] < c {
					start = i
				}
			}
		}
		return start
	}
	if len(z) < fallHistory+3 {
		return 0
	}
	noise := noiseOf(z)
	start := 0
	after := tails(z)
	seen := spanOf(z[:fallHistory+1])
	for i := fallHistory + 1; i < len(z)-1; i++ {
		seen = seen.join(span{z[i], z[i]})
		fall := z[i-1] - z[i]
		largest := 0.0
		for j := i - fallHistory; j < i; j++ {
			largest = max(largest, math.Abs(z[j-1]-z[j]))
		}
		lasts := after[i].hi < z[i-1]-fall/2
		if fall > fallNoise*noise && fall > fallBefore*largest && fall > fallRange*seen.width() && lasts {
			start = i
		}
	}
	return start
}

// span is the range of some values.
type span struct{ lo, hi float64 }

func (s span) width() float64   { return s.hi - s.lo }
func (s span) join(o span) span { return span{min(s.lo, o.lo), max(s.hi, o.hi)} }

// spanOf is that of one value at least.
func spanOf(z []float64) span { return span{slices.Min(z), slices.Max(z)} }

// tails are the spans of each epoch with all that come after it.
func tails(z []float64) []span {
	out := make([]span, len(z))
	for i, v := range slices.Backward(z) {
		out[i] = span{v, v}
		if i+1 < len(z) {
			out[i] = out[i].join(out[i+1])
		}
	}
	return out
}

func median(x []float64) float64 { return quantile(x, 0.5) }

// quantile is that of x, between its order statistics; 0 of nothing.
func quantile(x []float64, q float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	at := min(max(q, 0), 1) * float64(len(s)-1)
	i := min(int(at), len(s)-2)
	if i < 0 {
		return s[0]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}
