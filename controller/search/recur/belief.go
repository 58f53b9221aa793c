package recur

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// How the score is taken to vary over courses, in natural logarithms: about a level, a
// slope per octave, what departs from both smoothly, and what is a course's own. Costs
// tend to have a single valley, so that they bend upwards the further from the owner's.
const (
	levelSD  = 1
	slopeSD  = 0.3
	bendSD   = 0.25
	bendSpan = 1.5 // octaves
	ownSD    = 0.08
	bowl     = 0.08 // per octave squared
)

// belief is a Gaussian process over courses, fitted to those that were run.
type belief struct {
	xs    [][]float64
	level float64
	chol  mat.Cholesky
	alpha *mat.VecDense
}

func newBelief(courses []course, known []standing, level float64) *belief {
	n := len(known)
	b := &belief{level: level, alpha: mat.NewVecDense(n, nil)}
	k, y := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for _, s := range known {
		b.xs = append(b.xs, courses[s.course].at)
	}
	for i, s := range known {
		y.SetVec(i, s.score-level-prior(b.xs[i]))
		for j := range i + 1 {
			k.SetSym(i, j, covariance(b.xs[i], b.xs[j]))
		}
		k.SetSym(i, i, k.At(i, i)+s.variance+1e-9)
	}
	if b.chol.Factorize(k) {
		_ = b.chol.SolveVecTo(b.alpha, y) // a badly conditioned answer is still the best there is
	}
	return b
}

// at is the mean and the variance of the score of a course.
func (b *belief) at(x []float64) (mean, variance float64) {
	k := mat.NewVecDense(len(b.xs), nil)
	for i, z := range b.xs {
		k.SetVec(i, covariance(x, z))
	}
	w := mat.NewVecDense(len(b.xs), nil)
	_ = b.chol.SolveVecTo(w, k) // as above
	return b.level + prior(x) + mat.Dot(k, b.alpha), max(covariance(x, x)-mat.Dot(k, w), 0)
}

// prior is what the score is expected to be before anything was measured, beside a level
// and a slope.
func prior(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return bowl * sum / 2
}

func covariance(a, b []float64) float64 {
	dot := 0.0
	for i := range a {
		dot += a[i] * b[i]
	}
	d := distance(a, b)
	v := levelSD*levelSD + slopeSD*slopeSD*dot + bendSD*bendSD*math.Exp(-d*d/(2*bendSpan*bendSpan))
	if d == 0 {
		v += ownSD * ownSD
	}
	return v
}

func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}
