package search

import (
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

const (
	// ownEnds is how many runs under the owner's hyperparameters must have shown what they
	// end with before others are tried, since two differ by their seeds alone.
	ownEnds = 3

	// triedEnds is how many runs under others must have, before these are called as good.
	triedEnds = 2

	// guardFloor is the least standard deviation of the final quality between runs, as a
	// share of what may be lost: runs of one seed end alike, and say nothing about others.
	guardFloor = 0.25
)

// guard is what whole runs of a kind ended with, by the settings that they learned under.
type guard struct {
	quality tuning.Quality
	own     string
	ends    map[string][]float64
}

// verdict is what the guard says about settings.
type verdict struct {
	// t is by how many standard errors their mean final quality is better than the worst
	// that is accepted; NaN: not known.
	t      float64
	kept   bool // it is better, beyond doubt
	broken bool // it is worse, beyond doubt
}

// of holds the mean final quality under some settings against that under the owner's, of
// which it must keep the share 1 - max_loss (1 + max_loss where less is better). This is
// the test of non-inferiority of two normal means by their ratio, with one standard
// deviation for all settings and Student's t: D. Hauschke, M. Kieser, E. Diletti,
// M. Burke, "Sample size determination for proving equivalence based on the ratio of two
// means for normally distributed data", Statistics in Medicine 18 (1999). It is one-sided
// at 95 %, the error shared among all settings that were tried (Bonferroni).
func (g guard) of(settings string) verdict {
	if settings == g.own {
		return verdict{kept: true}
	}
	var spread recur.Spread
	for _, key := range slices.Sorted(maps.Keys(g.ends)) {
		spread.Add(g.ends[key])
	}
	own, ends := g.ends[g.own], g.ends[settings]
	if len(own) == 0 || len(ends) == 0 || spread.Degrees == 0 {
		return verdict{t: math.NaN()}
	}
	better, usual := 1.0, stat.Mean(own, nil)
	if g.quality.Direction == "min" {
		better = -1
	}
	keep := 1 - better*math.Copysign(g.quality.MaxLoss, usual)
	sd := max(math.Sqrt(spread.Variance()), guardFloor*g.quality.MaxLoss*math.Abs(usual))
	out := verdict{t: better * (stat.Mean(ends, nil) - keep*usual) / (sd * math.Sqrt(1/float64(len(ends))+keep*keep/float64(len(own))))}
	beyond := recur.Beyond(spread.Degrees, len(g.ends)-1)
	out.kept, out.broken = len(ends) >= triedEnds && out.t > beyond, out.t < -beyond
	return out
}

// watch gathers what the runs of the kind ended with.
func (h *history) watch() {
	h.guard = guard{own: h.learning(h.Own), ends: map[string][]float64{}}
	if h.Policy.Quality == nil {
		return
	}
	h.guard.quality = *h.Policy.Quality
	for _, p := range h.Past {
		if p.End == tuning.EndReached && p.Quality != nil && len(p.Began) > 0 && h.comparable(p.Began) {
			key := h.learning(p.Began)
			h.guard.ends[key] = append(h.guard.ends[key], *p.Quality)
		}
	}
}

// learning names what a job learns under some settings.
func (h *history) learning(s tuning.Settings) string {
	out := tuning.Settings{}
	for _, d := range h.Space {
		if d.Learns {
			out[d.Knob] = d.of(s)
		}
	}
	return out.Key()
}

// length is after how many epochs a run was done: where the guard has a target, those until
// it was first reached. 0: it was not, or that is not known. It missed the target where it
// ended without, under other hyperparameters than the owner's.
func (h *history) length(p tuning.PastRun) (epochs float64, missed bool) {
	if p.End != tuning.EndReached || len(p.Began) == 0 {
		return 0, false
	}
	others := h.learning(p.Began) != h.guard.own
	epochs = float64(p.Epochs)
	if q := h.Policy.Quality; q != nil && q.Target != nil {
		if p.Reached == nil || p.Reached.Target != *q.Target {
			return 0, false
		}
		epochs = float64(p.Reached.Epochs)
		missed = others && epochs == 0
	}
	if others && p.Quality == nil {
		epochs = 0
	}
	return epochs, missed
}

// Breaks reports whether the runs of the kind show, at 95 %, that what they end with under
// the hyperparameters of s is worse than the guard allows.
func (r Returning) Breaks(s tuning.Settings) bool {
	h := r.history()
	return h.guard.of(h.learning(s)).broken
}
