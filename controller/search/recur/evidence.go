package recur

import (
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// doubt is the error that all that was tried is allowed together before one of it is called
// better, or worse (Bonferroni).
const doubt = 0.05

// Beyond is by how many standard errors something must be better, one-sided at 95 %, where it
// is one of several that were tried and the errors have so many degrees of freedom.
func Beyond(degrees float64, tried int) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: degrees}.Quantile(1 - doubt/float64(max(tried, 1)))
}

// Spread is the variance within groups, pooled over them.
type Spread struct{ squares, Degrees float64 }

// Usual is a spread that nothing was measured of yet: what is usual counts for so many
// degrees of freedom.
func Usual(sd, degrees float64) Spread { return Spread{degrees * sd * sd, degrees} }

// Add joins the values of one group.
func (s *Spread) Add(group []float64) {
	if len(group) > 1 {
		s.AddVariance(stat.Variance(group, nil), float64(len(group)-1))
	}
}

// AddVariance joins a group of which the variance is known.
func (s *Spread) AddVariance(variance, degrees float64) {
	s.squares += variance * degrees
	s.Degrees += degrees
}

// Variance is that of one value; no number where there are no degrees of freedom.
func (s Spread) Variance() float64 { return s.squares / s.Degrees }
