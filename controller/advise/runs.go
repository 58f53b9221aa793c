package advise

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Runs are logarithms of the seconds that like jobs ran, by the class of the nodes that they ran on.
type Runs map[string][]float64

const (
	confidence = 0.95
	enoughRuns = 5  // on nodes of one class, and on all others
	lastRuns   = 50 // of one class are kept
)

// Add notes a run. Of each class the last runs are kept.
func (r Runs) Add(class string, seconds float64) {
	all := append(r[class], math.Log(seconds))
	r[class] = all[max(0, len(all)-lastRuns):]
}

// fastest is the class on which runs end sooner than on all others together, with the geometric means of
// seconds there and on the others; empty where no class does so with confidence (Welch 1947, "The generalization
// of Student's problem when several different population variances are involved"; Bonferroni's bound over the classes).
func (r Runs) fastest() (best string, there, others float64) {
	least := 0.0
	for _, class := range slices.Sorted(maps.Keys(r)) {
		on := r[class]
		var off []float64
		for c, runs := range r {
			if c != class {
				off = append(off, runs...)
			}
		}
		if min(len(on), len(off)) < enoughRuns {
			continue
		}
		a, va := stat.MeanVariance(on, nil)
		b, vb := stat.MeanVariance(off, nil)
		na, nb := va/float64(len(on)), vb/float64(len(off))
		reach := 0.0 // runs that are all equal leave no doubt
		if na+nb > 0 {
			nu := (na + nb) * (na + nb) / (na*na/float64(len(on)-1) + nb*nb/float64(len(off)-1))
			reach = math.Sqrt(na+nb) * distuv.StudentsT{Sigma: 1, Nu: nu}.Quantile(1-(1-confidence)/float64(len(r)))
		}
		if sooner := b - a - reach; sooner > least {
			best, there, others, least = class, math.Exp(a), math.Exp(b), sooner
		}
	}
	return best, there, others
}
