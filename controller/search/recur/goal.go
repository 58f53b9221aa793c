package recur

import (
	"math"

	"pitchpipe/controller/tuning"
)

// Cost is what an epoch or a run took.
type Cost struct {
	Seconds float64
	Joules  float64 // NaN: not measured
}

// Plus adds what another one took.
func (c Cost) Plus(o Cost) Cost { return Cost{c.Seconds + o.Seconds, c.Joules + o.Joules} }

// Times is the cost of so many of them.
func (c Cost) Times(n float64) Cost { return Cost{n * c.Seconds, n * c.Joules} }

// Goal is what is minimised, and under which limits.
type Goal struct {
	Objective tuning.Objective
	Weight    float64 // share of energy in tuning.Blend

	// Cores: as few core-seconds as the limits allow, in place of Objective.
	Cores bool

	// Attain, above 0: as few cores as attain this share of full speed, that of the
	// fastest setting seen, in place of Objective and limits.
	Attain float64

	MaxSlowdown float64 // seconds at most so many times those of the owner's settings; 0: unbounded
	MaxJoules   float64 // joules likewise
}

// Least tells whether the goal is to need as few cores as something allows.
func (g Goal) Least() bool { return g.Cores || g.Attain > 0 }

// Limited tells whether the owner's settings set limits.
func (g Goal) Limited() bool { return g.Attain == 0 && (g.MaxSlowdown > 0 || g.MaxJoules > 0) }

// Score is the natural logarithm of what is minimised; +Inf where a number that it
// needs is missing or not above 0. Costs under different numbers of cores are compared
// where the goal counts cores; it is ignored elsewhere.
func (g Goal) Score(c Cost, cores float64) float64 {
	switch {
	case g.Attain > 0:
		return logOf(cores)
	case g.Cores:
		return logOf(cores) + logOf(c.Seconds)
	}
	wj, ws := g.Objective.Weights(g.Weight)
	v := 0.0
	if wj > 0 {
		v += wj * logOf(c.Joules)
	}
	if ws > 0 {
		v += ws * logOf(c.Seconds)
	}
	return v
}

// Excess is by how much, in natural logarithms, the limits are broken against the cost
// of the owner's settings; 0: kept.
func (g Goal) Excess(c, own Cost) float64 {
	if !g.Limited() {
		return 0
	}
	return over(c.Seconds, own.Seconds, g.MaxSlowdown) + over(c.Joules, own.Joules, g.MaxJoules)
}

func over(v, own, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	x := logOf(v) - logOf(own) - math.Log(limit)
	if math.IsNaN(x) { // not measured: not known to keep the limit
		return math.Inf(1)
	}
	return max(x, 0)
}

func logOf(v float64) float64 {
	if !(v > 0) {
		return math.Inf(1)
	}
	return math.Log(v)
}
