package recur

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"pitchpipe/controller/tuning"
)

// Run is one past run, as far as it was measured.
type Run struct {
	Parts  []Part
	Epochs float64 // after which it reached its end; 0: it did not, or that is not known
	Place  string  // runs at different places (kinds of machines) cost differently
	Weight float64 // of its evidence beside that of a run of today, above 0 and at most 1
}

// Part is what a run measured under one point.
type Part struct {
	Point  int
	Epochs float64      // how many were measured
	Cost   tuning.Spent // of an epoch, their mean
}

// What is taken to be usual of the cost of an epoch, in natural logarithms.
const (
	// runSD is between runs under one point: inputs, neighbours and weather differ. It
	// counts as much as runDegrees runs; what repeated runs show joins it.
	runSD      = 0.1
	runDegrees = 2
	// pointSD is by how much a run suits a point better or worse than other runs do: two
	// points that were compared within one run may compare otherwise in the next.
	pointSD = 0.028
	// epochSD is that of one epoch.
	epochSD = 0.05
	// anySD is what a point may do before it was measured: as good as anything. What is
	// not known better than to unknownSD was not measured: it ran where no other point did.
	anySD     = 3.0
	unknownSD = 1.0
)

// evidence is what runs say of the points, against the owner's: the mean and the variance
// of the logarithm of a measure, by point. Each run is taken to have an unknown factor of
// its own, that of its input, so that points which were compared within one run are
// compared closely, and points that were measured in different runs with the doubt of two
// runs. It is the usual mixed model, solved by generalised least squares.
type evidence struct {
	mean, variance map[int]float64 // 0 at the owner's
	between        float64         // variance between runs
	degrees        float64         // of freedom behind it
}

// weigh joins the runs. The measure tells what is compared, in natural logarithms; a part
// for which it is no number is left out. False: the owner's point was not measured.
func weigh(runs []Run, own int, measure func(Part) float64) (evidence, bool) {
	var of []weighed
	column := map[int]int{} // of the effect of a point
	place := map[string]int{}
	for _, r := range runs {
		if !(r.Weight > 0) {
			continue
		}
		w := weighed{weight: r.Weight}
		for _, p := range r.Parts {
			y := measure(p)
			if math.IsNaN(y) || math.IsInf(y, 0) || !(p.Epochs > 0) {
				continue
			}
			if _, ok := column[p.Point]; !ok {
				column[p.Point] = len(column)
			}
			w.points, w.ys, w.epochs = append(w.points, p.Point), append(w.ys, y), append(w.epochs, p.Epochs)
		}
		if len(w.points) == 0 {
			continue
		}
		if _, ok := place[r.Place]; !ok {
			place[r.Place] = len(place)
		}
		w.at = place[r.Place]
		of = append(of, w)
	}
	if _, ok := column[own]; !ok {
		return evidence{}, false
	}
	out := evidence{mean: map[int]float64{}, variance: map[int]float64{}}
	out.between, out.degrees = betweenRuns(of, own)

	// The unknowns: a level for each place, then an effect for each point but the owner's.
	effect := func(point int) int {
		switch c := column[point]; {
		case point == own:
			return -1
		case c > column[own]:
			return len(place) + c - 1
		default:
			return len(place) + c
		}
	}
	n := len(place) + len(column) - 1
	information, b := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		information.SetSym(i, i, 1/(anySD*anySD))
	}
	level := of[0].ys[0] // numbers stay small
	for _, r := range of {
		r.join(information, b, level, out.between, effect)
	}
	var chol mat.Cholesky
	if !chol.Factorize(information) {
		return evidence{}, false
	}
	var cov mat.SymDense
	var x mat.VecDense
	if chol.InverseTo(&cov) != nil || chol.SolveVecTo(&x, b) != nil {
		return evidence{}, false
	}
	for point := range column {
		switch i := effect(point); {
		case i < 0:
			out.mean[point], out.variance[point] = 0, 0
		case cov.At(i, i) < unknownSD*unknownSD:
			out.mean[point], out.variance[point] = x.AtVec(i), cov.At(i, i)
		}
	}
	return out, true
}

// weighed is a run on its way through weigh.
type weighed struct {
	points     []int
	ys, epochs []float64
	at         int // its place
	weight     float64
}

// join adds the information of a run, whose parts share a variance and have one each: by
// Sherman and Morrison, the inverse of D + s·11ᵀ is D⁻¹ - s·D⁻¹11ᵀD⁻¹/(1 + s·1ᵀD⁻¹1).
func (r weighed) join(information *mat.SymDense, b *mat.VecDense, level, between float64, effect func(point int) int) {
	precision := make([]float64, len(r.points))
	sum := 0.0
	for i := range r.points {
		precision[i] = r.weight / (pointSD*pointSD + epochSD*epochSD/r.epochs[i])
		sum += precision[i]
	}
	shared := between / r.weight
	shrink := shared / (1 + shared*sum)
	for i, p := range r.points {
		for j, q := range r.points {
			w := -shrink * precision[i] * precision[j]
			if i == j {
				w += precision[i]
			}
			e, f := effect(p), effect(q)
			b.SetVec(r.at, b.AtVec(r.at)+w*(r.ys[j]-level))
			information.SetSym(r.at, r.at, information.At(r.at, r.at)+w)
			if e >= 0 {
				b.SetVec(e, b.AtVec(e)+w*(r.ys[j]-level))
			}
			if f >= 0 {
				information.SetSym(r.at, f, information.At(r.at, f)+w)
			}
			if e >= 0 && f >= e {
				information.SetSym(e, f, information.At(e, f)+w)
			}
		}
	}
}

// betweenRuns is the variance between runs under one point at one place, of one part a
// run: the owner's where it has one.
func betweenRuns(runs []weighed, own int) (variance, degrees float64) {
	type cell struct{ place, point int }
	type tally struct{ n, mean, squares float64 }
	cells := map[cell]*tally{}
	var order []cell
	for _, r := range runs {
		i := 0
		for j, p := range r.points {
			if p == own {
				i = j
			}
		}
		key := cell{r.at, r.points[i]}
		t := cells[key]
		if t == nil {
			t = &tally{}
			cells[key] = t
			order = append(order, key)
		}
		t.n++
		d := r.ys[i] - t.mean
		t.mean += d / t.n
		t.squares += d * (r.ys[i] - t.mean)
	}
	squares, degrees := runDegrees*runSD*runSD, float64(runDegrees)
	for _, key := range order {
		squares += cells[key].squares
		degrees += cells[key].n - 1
	}
	return squares / degrees, degrees
}
