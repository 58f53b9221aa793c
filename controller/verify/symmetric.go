package verify

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Where the inputs of a pair may differ, its log ratio is no longer normal around
// the effect: with one input ten times the size of another, pairs clump at zero
// and far out to both sides, a few of them can agree by chance, and a t interval
// takes their agreement for certainty. What remains true is symmetry: chance chose
// which of the two was tuned, so that a ratio is as likely as much above the
// effect as below it. For values x that are symmetric around δ
//
//	M(δ) = Π exp(λ(x-δ)) / cosh(λ(x-δ))
//
// is a nonnegative martingale that starts at 1, whatever else their distribution
// is, and so is an average over several λ. By Ville's inequality it ever reaches
// 1/α with probability at most α; M falls with δ, so the δ below which it has are
// excluded at all times together. The other side is the mirror image.
//
// Sources: de la Peña, "A general class of exponential inequalities for martingales
// and ratios" (1999), for symmetric variables; Ramdas, Ruf, Larsson and Koolen,
// "Admissible anytime-valid sequential inference must rely on nonnegative
// martingales" (2020), for the form with cosh. With large λ it becomes the sign
// test: below eight pairs nothing can be said at a level of 95 %.

// scales are the λ: from effects of a factor of e to such of half a percent. Each
// of them costs little where another one fits.
func scales() []float64 { return []float64{1, 4, 16, 64, 256} }

// symmetricPairs is betweenPairs for pairs of jobs whose inputs may differ. The
// width is that of the further bound.
func symmetricPairs(pairs []pairRatios, alpha float64) estimate {
	if len(pairs) == 0 {
		return none()
	}
	means, mirrored := make([]float64, len(pairs)), make([]float64, len(pairs))
	for i, p := range pairs {
		means[i] = stat.Mean(clip(p), nil)
		mirrored[i] = -means[i]
	}
	e := estimate{value: stat.Mean(means, nil), n: len(means)}
	low, high := lowest(means, alpha/2), -lowest(mirrored, alpha/2)
	e.half = max(e.value-low, high-e.value, 0)
	return e
}

// lowest is the lower bound of the centre of symmetry, -Inf while the values
// cannot bound it.
func lowest(xs []float64, alpha float64) float64 {
	limit := -math.Log(alpha)
	if float64(len(xs))*math.Ln2-math.Log(float64(len(scales()))) < limit {
		return math.Inf(-1)
	}
	// Far below all values every term is at its bound of 2, far above at 0.
	below, above := xs[0], xs[0]
	for _, x := range xs {
		below, above = min(below, x), max(above, x)
	}
	for reach := 1.0; wealth(xs, below) < limit; reach *= 2 {
		below -= reach
		if reach > Unbounded {
			return math.Inf(-1)
		}
	}
	for range 44 {
		if middle := (below + above) / 2; wealth(xs, middle) >= limit {
			below = middle
		} else {
			above = middle
		}
	}
	return below
}

// wealth is ln M(δ), averaged over the scales.
func wealth(xs []float64, delta float64) float64 {
	logs := make([]float64, 0, len(scales()))
	most := math.Inf(-1)
	for _, lambda := range scales() {
		sum := 0.0
		for _, x := range xs {
			u := lambda * (x - delta)
			// u - ln cosh u = ln 2 - ln(1 + exp(-2u)), without overflow.
			if u > 0 {
				sum += math.Ln2 - math.Log1p(math.Exp(-2*u))
			} else {
				sum += math.Ln2 + 2*u - math.Log1p(math.Exp(2*u))
			}
		}
		logs, most = append(logs, sum), max(most, sum)
	}
	total := 0.0
	for _, v := range logs {
		total += math.Exp(v - most)
	}
	return most + math.Log(total/float64(len(logs)))
}
