package recur

import (
	"math"

	"pitchpipe/controller/tuning"
)

// Goal is what is minimised, and under which limits.
type Goal struct {
	tuning.Measure

	// Cores: as few core-seconds as the limits allow, in place of Measure.
	Cores bool

	// Attain, above 0: as few cores as attain this share of full speed, that of the
	// fastest setting seen, in place of Measure and limits.
	Attain float64

	MaxSlowdown float64 // seconds at most so many times those of the owner's settings; 0: unbounded
	MaxJoules   float64 // joules likewise
}

// Least reports whether the goal is to need as few cores as something allows.
func (g Goal) Least() bool { return g.Cores || g.Attain > 0 }

// Limited reports whether the owner's settings set limits.
func (g Goal) Limited() bool { return g.Attain == 0 && (g.MaxSlowdown > 0 || g.MaxJoules > 0) }

// Score is the natural logarithm of what is minimised; +Inf where a number that it
// needs is missing or not above 0. Costs under different numbers of cores are compared
// where the goal counts cores; it is ignored elsewhere.
func (g Goal) Score(c tuning.Spent, cores float64) float64 {
	switch {
	case g.Attain > 0:
		return logOf(cores)
	case g.Cores:
		return logOf(cores) + logOf(c.Seconds)
	}
	return g.Log(c)
}

// Excess is by how much, in natural logarithms, the limits are broken against the cost
// of the owner's settings; 0: kept.
func (g Goal) Excess(c, own tuning.Spent) float64 {
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
