package classify

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/tuning"
)

const (
	enoughShare   = 0.5   // of the weight must be present in both that are compared
	leastSpread   = 0.5   // of a class, in units of noise squared
	normalIQR     = 1.349 // interquartile range of a normal distribution, in standard deviations
	unexplained   = 0.05  // of runs of one kind lie farther apart than noise explains
	leastResidual = 4     // runs beyond the first of their kinds, from which noise is learned
)

// Axis is one feature and the unit it is measured in.
type Axis struct {
	Feature string  `json:"feature"`
	Median  float64 `json:"median"` // over the runs; where a run without the feature is put while clusters are sought
	Scale   float64 `json:"scale"`  // noise between runs of one kind
	Weight  float64 `json:"weight"`
	Floor   float64 `json:"floor,omitempty"` // of a feature that is ln(1 + rate): see Prior; 0 = none
}

// place is where a value lies on the axis. A rate, told as ln(1 + rate), lies at
// ln(1 + rate / floor): far above the floor as before up to a constant, and far below it
// all near 0.
func (a Axis) place(v float64) float64 {
	if a.Floor == 0 {
		return v
	}
	return over(v, a.Floor)
}

func (a Axis) value(place float64) float64 {
	if a.Floor == 0 {
		return place
	}
	return over(place, 1/a.Floor)
}

// over is ln(1 + x/floor) of ln(1 + x), and odd. No power of e grows, whatever x is.
func over(v, floor float64) float64 {
	size := math.Abs(v)
	return math.Copysign(size+math.Log1p((floor-1)*math.Exp(-size))-math.Log(floor), v)
}

// axes are the features that at least half of the runs have, sorted by name. Their noise is
// at least a share of the documented one, which weighs as much less.
func axes(schema string, runs []run, share float64) []Axis {
	values := map[string][]float64{}
	kinds := map[string][]run{}
	for _, r := range runs {
		for f, v := range r.features {
			values[f] = append(values[f], v)
		}
		kinds[r.kind] = append(kinds[r.kind], r)
	}
	delete(kinds, "") // says nothing about the noise within a kind
	var out []Axis
	for _, f := range slices.Sorted(maps.Keys(values)) {
		if 2*len(values[f]) < len(runs) {
			continue
		}
		p := prior(schema, f)
		a := Axis{Feature: f, Median: tuning.Quantile(values[f], 0.5), Weight: p.Weight, Floor: p.Floor}
		a.Scale = max(share*p.Noise, noise(a, kinds, p.Noise, share*priorRuns))
		out = append(out, a)
	}
	return out
}

// noise is the standard deviation of a feature between runs of one kind: the
// interquartile range of what is left when each kind's median is taken away,
// drawn towards the documented noise. The spread over all runs would hide the very
// features that tell kinds apart.
func noise(a Axis, kinds map[string][]run, documented, priorRuns float64) float64 {
	var rest []float64
	free := 0.0
	for _, runs := range kinds {
		var values []float64
		for _, r := range runs {
			if v, ok := r.features[a.Feature]; ok {
				values = append(values, a.place(v))
			}
		}
		n := float64(len(values))
		if n < 2 {
			continue
		}
		middle, widen := tuning.Quantile(values, 0.5), math.Sqrt(n/(n-1))
		for _, v := range values {
			rest = append(rest, (v-middle)*widen)
		}
		free += n - 1
	}
	if free < leastResidual {
		return documented
	}
	seen := (tuning.Quantile(rest, 0.75) - tuning.Quantile(rest, 0.25)) / normalIQR
	return math.Sqrt((priorRuns*documented*documented + free*seen*seen) / (priorRuns + free))
}

// row is where features lie on the axes, in units of noise; NaN where one is missing.
func (s Stratum) row(features map[string]float64) []float64 {
	out := make([]float64, len(s.Axes))
	for i, a := range s.Axes {
		out[i] = math.NaN()
		if v, ok := features[a.Feature]; ok && usable(v) {
			out[i] = a.place(v) / a.Scale
		}
	}
	return out
}

func (s Stratum) values(row []float64) map[string]float64 {
	out := map[string]float64{}
	for i, a := range s.Axes {
		if !math.IsNaN(row[i]) {
			out[a.Feature] = a.value(row[i] * a.Scale)
		}
	}
	return out
}

// point is a row where squared Euclidean distance is the stratum's squared distance. A
// missing feature gets the median, so that it pulls nowhere.
func (s Stratum) point(row []float64) []float64 {
	weight := tuning.Sum(s.Axes, func(a Axis) float64 { return a.Weight })
	out := make([]float64, len(row))
	for i, a := range s.Axes {
		if !math.IsNaN(row[i]) {
			out[i] = (row[i] - a.place(a.Median)/a.Scale) * math.Sqrt(a.Weight/weight)
		}
	}
	return out
}

// center is the mean of the rows of runs, of each feature over those that have it.
func center(members []run) []float64 {
	out := make([]float64, len(members[0].row))
	for i := range out {
		sum, n := 0.0, 0.0
		for _, r := range members {
			if !math.IsNaN(r.row[i]) {
				sum, n = sum+r.row[i], n+1
			}
		}
		out[i] = sum / n // NaN where none has it
	}
	return out
}

// comparison is what two rows have in common.
type comparison struct {
	distance float64 // weighted root mean square, in units of noise, over the features that both have
	share    float64 // of the weight that these features have
	freedom  float64 // see freedom
}

func (s Stratum) compare(a, b []float64) comparison {
	sum, present, squares, all := 0.0, 0.0, 0.0, 0.0
	for i, axis := range s.Axes {
		all += axis.Weight
		d := a[i] - b[i]
		if math.IsNaN(d) {
			continue
		}
		present += axis.Weight
		squares += axis.Weight * axis.Weight
		sum += axis.Weight * d * d
	}
	if present == 0 {
		return comparison{distance: math.Inf(1)}
	}
	return comparison{math.Sqrt(sum / present), present / all, present * present / squares}
}

// freedom is how many equally weighted independent features would vary as much
// as the weighted mean of these (Satterthwaite, 1946).
func (s Stratum) freedom() float64 {
	all := make([]float64, len(s.Axes))
	return s.compare(all, all).freedom
}

// mergeDistance is how far apart the means of two runs of one kind are at most, except in a
// share of the cases: the difference has twice the variance of one.
func mergeDistance(freedom, but float64) float64 {
	if freedom == 0 {
		return 0
	}
	return math.Sqrt(2 * distuv.ChiSquared{K: freedom}.Quantile(1-but) / freedom)
}

// radius is within which distance a further run of the class lies with confidence. The
// squared distance of a new run from the mean of n runs is spread by (1 + 1/n), and the
// variance itself is known from priorRuns + n - 1 runs only, which makes it an F
// distribution.
func radius(g Group, freedom float64) float64 {
	n := float64(len(g.Runs))
	f := distuv.F{D1: freedom, D2: freedom * (priorRuns + n - 1)}
	return math.Sqrt(g.Spread * (1 + 1/n) * f.Quantile(confidence))
}
