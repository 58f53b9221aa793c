package verify

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/tuning"
)

// Within one job the interval is a confidence sequence from a Gaussian mixture over the
// standardised effect, with the scale and the common mean removed by invariance: for n
// observations whose residual sum of squares is S and an estimate d of the effect with ν
// effective observations, the Bayes factor against the effect δ is
//
//	B(δ) = √r · [ (S + ν(d-δ)²) / (S + rν(d-δ)²) ]^((n-1)/2),   r = φ/(φ+ν)
//
// B is a nonnegative martingale that starts at 1, so by Ville's inequality
// it ever reaches 1/α with probability at most α, and the δ at which it has not
// are an interval that holds at all times together.
//
// Sources: Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for
// Gaussian means with unknown variance" (2023); Lindon, Ham, Tingley and Bojinov,
// "Anytime-valid linear models and regression adjusted causal inference in randomized
// experiments" (2022), for two samples as a regression on a constant and an indicator.

// mixture is φ: the mixture is as if effects were normal with a standard
// deviation of 1/√φ ≈ 3 times the noise of one epoch. It is fixed beforehand, as
// the theorem asks; it sets where the interval is narrowest, not whether it holds.
const mixture = 0.1

// noiseFloor is the smallest standard deviation of ln(seconds) of an epoch that
// is believed: clocks and samples are no better, and a simulation that repeats
// itself exactly has not measured its noise.
const noiseFloor = 0.002

// halfWidth solves B(δ) = 1/alpha for |d-δ|. It is +Inf while the data cannot
// bound the effect at all.
func halfWidth(sse, nu, power, alpha float64) float64 {
	if nu <= 0 || power <= 0 || alpha <= 0 {
		return math.Inf(1)
	}
	r := mixture / (mixture + nu)
	c := math.Exp(2 / power * -(math.Log(alpha) + math.Log(r)/2))
	if c*r >= 1 {
		return math.Inf(1)
	}
	return math.Sqrt((c - 1) * sse / (nu * (1 - c*r)))
}

// estimate is a log ratio with its half width.
type estimate struct {
	value float64
	half  float64
	n     int // pairs
}

func none() estimate { return estimate{half: math.Inf(1)} }

func (e estimate) low() float64  { return max(e.value-e.half, -Unbounded) }
func (e estimate) high() float64 { return min(e.value+e.half, Unbounded) }

// twoSamples compares the epochs of one job before and after. The effect of
// having been started again is a random term of its own with the given deviation on
// both sides; half of alpha pays for it and the widths add, which is rigorous
// whatever the terms' dependence.
func twoSamples(before, after []float64, attemptSD, alpha float64) estimate {
	if len(before) == 0 || len(after) == 0 {
		return none()
	}
	attempts := 0.0
	if attemptSD > 0 {
		alpha /= 2
		attempts = distuv.UnitNormal.Quantile(1-alpha/2) * attemptSD * math.Sqrt2
	}
	e := between(clip(before), clip(after), alpha)
	for _, b := range typical(before, after) {
		for _, a := range typical(after, before) {
			other := between(b, a, alpha)
			e.half = max(e.half, math.Abs(other.value-e.value)+other.half)
		}
	}
	e.half += attempts
	return e
}

// between compares two samples of independent normal noise.
func between(before, after []float64, alpha float64) estimate {
	n1, n2 := float64(len(before)), float64(len(after))
	m1, m2 := stat.Mean(before, nil), stat.Mean(after, nil)
	dof := n1 + n2 - 2
	sse := max(squares(before, m1)+squares(after, m2), dof*noiseFloor*noiseFloor)
	return estimate{value: m2 - m1, half: halfWidth(sse, n1*n2/(n1+n2), n1+n2-1, alpha), n: min(len(before), len(after))}
}

// tie is how much an epoch may be nearer to one end and still be in the middle: it is of
// both parts, or rounding would choose.
const tie = 1e-9

// hidesFrom is from how many epochs on a side would hide the doubt about the other.
const hidesFrom = 2 * clipFrom

// typical are the epochs of a side that may represent it. A side that is too short to
// clip by itself is held against the deviation of the other. Where its epochs are further
// apart than one stall away, one of them stalled, and the many epochs of the other side
// would hide how little is known of this one: it is taken for the fast ones and for the
// slow ones, and the interval has to hold for both.
func typical(side, other []float64) [][]float64 {
	if len(side) < 2 || len(side) >= clipFrom || len(other) < hidesFrom {
		return [][]float64{clip(side)}
	}
	low, high := slices.Min(side), slices.Max(side)
	if _, r := reach(other); high-low <= r {
		return [][]float64{side}
	}
	var fast, slow []float64
	for _, x := range side {
		if x-low <= high-x+tie {
			fast = append(fast, x)
		}
		if high-x <= x-low+tie {
			slow = append(slow, x)
		}
	}
	return [][]float64{fast, slow}
}

func squares(xs []float64, mean float64) float64 {
	return tuning.Sum(xs, func(x float64) float64 { return (x - mean) * (x - mean) })
}

// Clipping: an epoch further than clipAt robust standard deviations from the
// median of its side counts as if it were there. It stays a slow epoch, but one
// stall does not hide the effect of all others. Below clipFrom epochs the median
// deviation is too uncertain to clip by. This bends the martingale a little; the
// simulations in the tests hold the error below the level with it.
const (
	clipAt    = 6.0
	clipFrom  = 8
	clipFloor = 0.01
	madToSD   = 1.4826
)

func clip(xs []float64) []float64 {
	if len(xs) < clipFrom {
		return xs
	}
	m, r := reach(xs)
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = min(max(x, m-r), m+r)
	}
	return out
}

// reach returns the median m, and the distance r up to which an epoch counts as it is.
func reach(xs []float64) (m, r float64) {
	m = tuning.Median(xs)
	deviations := make([]float64, len(xs))
	for i, x := range xs {
		deviations[i] = math.Abs(x - m)
	}
	return m, clipAt * max(madToSD*tuning.Median(deviations), clipFloor)
}
