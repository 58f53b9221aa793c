package recurring

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/tuning"
)

// doubt is the error that all that was tried is allowed together (Bonferroni).
const doubt = 0.05

// Beyond is how many standard errors something must be better, one-sided at 95 %, where it is
// one of several.
func Beyond(degrees float64, tried int) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: degrees}.Quantile(1 - doubt/float64(max(tried, 1)))
}

// Spread is the variance within groups, pooled over them.
type Spread struct{ squares, Degrees float64 }

// Usual counts what is usual for so many degrees of freedom.
func Usual(sd, degrees float64) Spread { return Spread{degrees * sd * sd, degrees} }

// Add joins the values of one group.
func (s *Spread) Add(group []float64) {
	if len(group) > 1 {
		degrees := float64(len(group) - 1)
		s.squares += stat.Variance(group, nil) * degrees
		s.Degrees += degrees
	}
}

// Variance is the variance of one value; not a number without degrees of freedom.
func (s Spread) Variance() float64 { return s.squares / s.Degrees }

// Run is one past run, as far as it was measured.
type Run struct {
	Parts  []Part
	Epochs float64 // after which it reached its end; 0: it did not, or that is not known
	Place  string  // runs at different places (kinds of machines) cost differently
	Weight float64 // of its evidence against that of a run of today, above 0 and at most 1
}

// Part is what a run measured under one point.
type Part struct {
	Point  int
	Epochs float64      // how many were measured
	Cost   tuning.Spent // of an epoch, their mean
}

// What is taken to be usual of the cost of an epoch, in natural logarithms.
const (
	// runSD is between runs under one point: inputs, neighbours and weather differ.
	runSD      = 0.1
	runDegrees = 2
	// pointSD is how much the ratio of two points may change in the next run.
	pointSD = 0.028
	// epochSD is that of one epoch.
	epochSD = 0.05
	// anySD is what a point may do before it was measured. What is not known better than to
	// unknownSD was not measured.
	anySD     = 3.0
	unknownSD = 1.0
	// noSD is what the owner's point does against itself: nothing.
	noSD = 1e-4
)

// evidence is what runs say about the points, against the owner's. Each run has its own unknown
// factor, that of its input: a mixed model, solved by generalised least squares.
type evidence struct {
	mean, variance map[int]float64 // 0 at the owner's
	between        Spread          // between runs under one point at one place
}

// part is a Part that can be compared.
type part struct {
	point, effect int // effect: the column of the unknown that is the point's
	y, precision  float64
}

// weigh joins the runs. A part whose measure is not a number is left out. False: the owner's
// point was not measured.
func weigh(runs []Run, own int, measure func(Part) float64) (evidence, bool) {
	// The unknowns: an effect for each point, which is 0 for the owner's, and a level for
	// each place.
	columns := map[any]int{}
	column := func(key any) int {
		if _, ok := columns[key]; !ok {
			columns[key] = len(columns)
		}
		return columns[key]
	}
	type seen struct {
		parts  []part
		place  int // column
		weight float64
	}
	var of []seen
	type cell struct{ place, point int }
	cells := map[cell][]float64{} // of one part a run, the owner's where it has one
	var order []cell
	for _, r := range runs {
		var parts []part
		for _, p := range r.Parts {
			y := measure(p)
			if math.IsNaN(y) || math.IsInf(y, 0) || !(p.Epochs > 0) || !(r.Weight > 0) {
				continue
			}
			parts = append(parts, part{p.Point, column(p.Point), y, r.Weight / (pointSD*pointSD + epochSD*epochSD/p.Epochs)})
		}
		if len(parts) == 0 {
			continue
		}
		of = append(of, seen{parts, column(r.Place), r.Weight})
		one := parts[0]
		for _, p := range parts {
			if p.point == own {
				one = p
			}
		}
		key := cell{column(r.Place), one.point}
		if cells[key] == nil {
			order = append(order, key)
		}
		cells[key] = append(cells[key], one.y)
	}
	if _, ok := columns[own]; !ok {
		return evidence{}, false
	}
	n := len(columns)
	out := evidence{mean: map[int]float64{}, variance: map[int]float64{}, between: Usual(runSD, runDegrees)}
	for _, key := range order {
		out.between.Add(cells[key])
	}
	information, b := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		information.SetSym(i, i, 1/(anySD*anySD))
	}
	information.SetSym(columns[own], columns[own], 1/(noSD*noSD))
	level := of[0].parts[0].y // numbers stay small
	for _, run := range of {
		// Parts of a run share a variance s and have one each: by Sherman and Morrison, the
		// inverse of D + s·11ᵀ is D⁻¹ - s·D⁻¹11ᵀD⁻¹/(1 + s·1ᵀD⁻¹1).
		sum, values := mat.NewVecDense(n, nil), 0.0
		precision := 0.0
		for _, p := range run.parts {
			x := mat.NewVecDense(n, nil)
			x.SetVec(p.effect, 1)
			x.SetVec(run.place, 1)
			information.SymRankOne(information, p.precision, x)
			sum.AddScaledVec(sum, p.precision, x)
			b.AddScaledVec(b, p.precision*(p.y-level), x)
			values += p.precision * (p.y - level)
			precision += p.precision
		}
		shared := out.between.Variance() / run.weight
		shrink := -shared / (1 + shared*precision)
		information.SymRankOne(information, shrink, sum)
		b.AddScaledVec(b, shrink*values, sum)
	}
	var chol mat.Cholesky
	var cov mat.SymDense
	var x mat.VecDense
	if !chol.Factorize(information) || chol.InverseTo(&cov) != nil || chol.SolveVecTo(&x, b) != nil {
		return evidence{}, false
	}
	for key, i := range columns {
		if point, ok := key.(int); ok && cov.At(i, i) < unknownSD*unknownSD {
			out.mean[point], out.variance[point] = x.AtVec(i), cov.At(i, i)
		}
	}
	out.mean[own], out.variance[own] = 0, 0
	return out, true
}
