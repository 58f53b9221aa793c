package classify

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	enoughShare   = 0.5   // of the weight must be present in both that are compared
	leastSpread   = 0.5   // of a class, in units of noise squared
	normalIQR     = 1.349 // interquartile range of a normal distribution, in standard deviations
	leastResidual = 4     // runs beyond the first of their kinds, from which noise is learned
)

// axes are the features that at least half of the runs have, sorted by name.
func axes(schema string, runs []run, cfg Config) []Axis {
	values := map[string][]float64{}
	for _, r := range runs {
		for f, v := range r.features {
			values[f] = append(values[f], v)
		}
	}
	var out []Axis
	for _, f := range slices.Sorted(maps.Keys(values)) {
		if 2*len(values[f]) < len(runs) {
			continue
		}
		p := cfg.prior(schema, f)
		a := Axis{Feature: f, Median: quantile(values[f], 0.5), Weight: p.Weight, Floor: p.Floor}
		a.Scale = noise(a, runs, p.Noise, cfg.PriorRuns)
		out = append(out, a)
	}
	return out
}

// noise is the standard deviation of a feature between runs of one kind: the
// interquartile range of what is left when each kind's median is taken away,
// drawn towards the documented noise and never below it. It is the spread within
// kinds, not over all runs: that would be large where kinds differ, and would
// hide the very features that tell them apart.
func noise(a Axis, runs []run, least, priorRuns float64) float64 {
	kinds := map[string][]float64{}
	for _, r := range runs {
		if v, ok := r.features[a.Feature]; ok && r.kind != "" {
			kinds[r.kind] = append(kinds[r.kind], a.place(v))
		}
	}
	var rest []float64
	free := 0.0
	for _, values := range kinds {
		n := float64(len(values))
		if n < 2 {
			continue
		}
		middle := quantile(values, 0.5)
		for _, v := range values {
			rest = append(rest, (v-middle)*math.Sqrt(n/(n-1)))
		}
		free += n - 1
	}
	if free < leastResidual {
		return least
	}
	seen := (quantile(rest, 0.75) - quantile(rest, 0.25)) / normalIQR
	return max(least, math.Sqrt((priorRuns*least*least+free*seen*seen)/(priorRuns+free)))
}

// quantile interpolates between the order statistics; the input stays as it is.
func quantile(v []float64, p float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 1 {
		return v[0]
	}
	at := p * float64(len(v)-1)
	i := min(int(at), len(v)-2)
	return v[i] + (at-float64(i))*(v[i+1]-v[i])
}

// distance is the weighted root mean square, in units of noise, over the
// features that both have; share is how much of the weight that is.
func (s Stratum) distance(a, b map[string]float64) (distance, share float64) {
	sum, present, all := 0.0, 0.0, 0.0
	for _, axis := range s.Axes {
		all += axis.Weight
		x, okX := a[axis.Feature]
		y, okY := b[axis.Feature]
		if !okX || !okY || !usable(x) || !usable(y) {
			continue
		}
		present += axis.Weight
		d := (axis.place(x) - axis.place(y)) / axis.Scale
		sum += axis.Weight * d * d
	}
	if present == 0 {
		return math.Inf(1), 0
	}
	return math.Sqrt(sum / present), present / all
}

// freedom is how many equally weighted independent features would vary as much
// as the weighted mean of these (Satterthwaite, 1946).
func freedom(axes []Axis) float64 {
	sum, squares := 0.0, 0.0
	for _, a := range axes {
		sum += a.Weight
		squares += a.Weight * a.Weight
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / squares
}

// mergeDistance is how far apart the means of two runs of one kind are at most,
// in 95 of 100 cases: the difference has twice the variance of one.
func mergeDistance(freedom float64) float64 {
	if freedom == 0 {
		return 0
	}
	return math.Sqrt(2 * distuv.ChiSquared{K: freedom}.Quantile(0.95) / freedom)
}

// radius is within which distance a further run of the class lies with the
// model's confidence. The squared distance of a new run from the mean of n runs
// is spread by (1 + 1/n), and the variance itself is known from PriorRuns + n - 1
// runs only, which makes it an F distribution.
func radius(m *Model, g Group, freedom float64) float64 {
	n := float64(len(g.Runs))
	f := distuv.F{D1: freedom, D2: freedom * (m.PriorRuns + n - 1)}
	return math.Sqrt(g.Spread * (1 + 1/n) * f.Quantile(m.Confidence))
}
