package recurring

import (
	"math"

	"pitchpipe/controller/tuning"
)

// Goal is what is minimised, and under which limits.
type Goal struct {
	tuning.Measure

	Cores bool // as few core-seconds as the limits allow, in place of Measure

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

// Score is the natural logarithm of what is minimised; +Inf where a number is missing.
func (g Goal) Score(c tuning.Spent, cores float64) float64 {
	switch {
	case g.Attain > 0:
		return tuning.LogOf(cores)
	case g.Cores:
		return tuning.LogOf(cores) + tuning.LogOf(c.Seconds)
	}
	return g.Log(c)
}

// Excess is by how much, in natural logarithms, the limits are broken; 0: kept.
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
	x := tuning.LogOf(v) - tuning.LogOf(own) - math.Log(limit)
	if math.IsNaN(x) { // not measured: not known to keep the limit
		return math.Inf(1)
	}
	return max(x, 0)
}

// Beta is how many times the cost of the best course a run may cost before it is stopped.
const Beta = 2

// Tuner is what is known about one kind of job. It is not safe for concurrent use.
type Tuner struct {
	layout
	goal  Goal
	limit int // of points measured besides the owner's; 0: none

	cells []cell // by point
	arms  []arm  // by course
	runs  int    // that ended

	led     *belief   // what leader found; nil: something was learned since
	weighed *verdicts // nil unless runs are whole, see Whole
}

// cell is what was measured at one point, per epoch.
type cell struct {
	n      int
	sum    tuning.Spent
	failed bool
	closed bool // never to be run
}

func (c cell) known() bool        { return c.n > 0 || c.failed }
func (c cell) cost() tuning.Spent { return c.sum.Times(1 / float64(c.n)) }

// arm is what the runs of one course took.
type arm struct {
	reached, failed int
	epochs          float64   // sum over those that reached the end
	logs            []float64 // ln(epochs) of each of them

	barred  bool // not to be run
	unknown bool // the end of a run of it is unknown
}

func (a arm) runs() int { return a.reached + a.failed }

func (a arm) mean() float64 { return a.epochs / float64(a.reached) }

// New begins with an empty history. At most probes points are ever tried; 0: no limit.
func New(s Space, g Goal, probes int) (*Tuner, error) {
	l, err := newLayout(s)
	if err != nil {
		return nil, err
	}
	return &Tuner{
		layout: l, goal: g, limit: probes,
		cells: make([]cell, len(l.Points)), arms: make([]arm, len(l.courses)),
	}, nil
}

// Measured notes what an epoch under a point cost.
func (t *Tuner) Measured(point int, c tuning.Spent) {
	if t.cells[point].n == 0 {
		t.led = nil
	}
	t.cells[point].n++
	t.cells[point].sum = t.cells[point].sum.Plus(c)
}

// Failed notes that a job did not run under a point.
func (t *Tuner) Failed(point int) { t.cells[point].failed, t.led = true, nil }

// Reached notes that a run of the course of a point came to its end.
func (t *Tuner) Reached(point int, epochs float64) {
	t.runs++
	t.led = nil
	a := &t.arms[t.of[point]]
	a.reached++
	a.epochs += epochs
	a.logs = append(a.logs, math.Log(epochs))
}

// Missed notes that a run was stopped, or ended short of its end.
func (t *Tuner) Missed(point int) {
	t.arms[t.of[point]].failed++
	t.led = nil
}

// Stops reports whether a run that has cost this much and has not ended is stopped. A run of the
// owner's course never is.
func (t *Tuner) Stops(point int, spent tuning.Spent) bool {
	if t.of[point] == t.of[t.Own] || t.goal.Least() {
		return false
	}
	best := t.leader()
	if best.point < 0 {
		return false
	}
	if t.goal.Score(spent, t.cores[point]) > best.score+t.octave() {
		return true
	}
	own, ok := t.ownCost()
	return ok && t.goal.Excess(spent, own) > math.Log(Beta)
}

func (t *Tuner) octave() float64 { return t.goal.Degree() * math.Log(Beta) }

func (t *Tuner) ownCost() (tuning.Spent, bool) {
	a, c := t.arms[t.of[t.Own]], t.cells[t.Own]
	return c.cost().Times(a.mean()), a.reached > 0 && c.n > 0
}

// choice is a point with its score and by how much it breaks the limits.
type choice struct {
	point         int
	score, excess float64
}

func none() choice { return choice{-1, math.Inf(1), math.Inf(1)} }

// A choice that breaks the limits less is preferred, then the cheaper one.
func (c choice) before(o choice) bool {
	if c.excess != o.excess {
		return c.excess < o.excess
	}
	return c.score < o.score
}

// Best is the best point that was measured, came to its end and keeps the limits, else the owner's.
func (t *Tuner) Best() int {
	if b := t.leader(); b.point >= 0 && b.excess == 0 {
		return b.point
	}
	return t.Own
}
