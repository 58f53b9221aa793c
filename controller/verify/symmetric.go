package verify

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// The inputs of a pair may differ, so its log ratio is not normal around the effect: with
// one input ten times the size of another, pairs clump at zero and far out to both sides,
// a few of them can agree by chance, and a t interval takes their agreement for certainty.
// What remains true is symmetry: chance chose which of the two was tuned, so that a ratio
// is as likely as much above the effect as below it. For values x that are symmetric
// around δ
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
func scales() [scaleCount]float64 { return [scaleCount]float64{1, 4, 16, 64, 256} }

const scaleCount = 5

// symmetricPairs takes each pair as one observation: the mean of its log ratios at its
// matching epochs. The width is that of the further bound.
func symmetricPairs(pairs [][]float64, alpha float64) estimate {
	if len(pairs) == 0 {
		return none()
	}
	means, mirrored := make([]float64, len(pairs)), make([]float64, len(pairs))
	for i, p := range pairs {
		means[i] = stat.Mean(clip(p), nil)
		mirrored[i] = -means[i]
	}
	value := stat.Mean(means, nil)
	low, high := lowest(means, alpha/2), -lowest(mirrored, alpha/2)
	return estimate{value: value, half: max(value-low, high-value, 0), n: len(means)}
}

// lowest is the lower bound of the centre of symmetry, -Inf while the values
// cannot bound it.
func lowest(xs []float64, alpha float64) float64 {
	limit := -math.Log(alpha)
	if float64(len(xs))*math.Ln2-math.Log(scaleCount) < limit {
		return math.Inf(-1)
	}
	// Far below all values every term is at its bound of 2, far above at 0.
	over := func(delta float64) float64 { return wealth(xs, delta) - limit }
	below, above := slices.Min(xs), slices.Max(xs)
	low, high := over(below), over(above)
	for reach := 1.0; low < 0; reach *= 2 {
		below -= reach
		low = over(below)
		if reach > Unbounded {
			return math.Inf(-1)
		}
	}
	// By the secant; where an end stays, its value counts for half, or it would stay for
	// ever (the Illinois method: Dowell and Jarratt, 1971).
	for stays := 0; low > 0 && above-below > precision*max(1, math.Abs(below)); {
		x := below + (above-below)*low/(low-high)
		if v := over(x); v >= 0 {
			below, low, stays = x, v, max(stays, 0)+1
		} else {
			above, high, stays = x, v, min(stays, 0)-1
		}
		if stays > 1 {
			high /= 2
		} else if stays < -1 {
			low /= 2
		}
	}
	return below
}

// precision is how near to the bound the search comes.
const precision = 1e-9

// wealth is ln M(δ), averaged over the scales.
func wealth(xs []float64, delta float64) float64 {
	var logs [scaleCount]float64
	for i, lambda := range scales() {
		logs[i] = growth(xs, delta, lambda)
	}
	return floats.LogSumExp(logs[:]) - math.Log(scaleCount)
}

// growth is the sum of u - ln cosh u = ln 2 + min(2u, 0) - ln(1 + exp(-2|u|)) over all
// u = λ(x-δ). The last terms are multiplied up, and their logarithm taken once for many.
func growth(xs []float64, delta, lambda float64) float64 {
	const (
		many  = 1000 // factors of at most 2 fit into a number
		small = 37   // exp(-37) added to 1 is 1
	)
	sum, product := float64(len(xs))*math.Ln2, 1.0
	for i, x := range xs {
		u := 2 * lambda * (x - delta)
		sum += min(u, 0)
		if u = math.Abs(u); u < small {
			product *= 1 + math.Exp(-u)
		}
		if i%many == many-1 {
			sum -= math.Log(product)
			product = 1
		}
	}
	return sum - math.Log(product)
}
