package recurring

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

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

// Excess is how much, in natural logarithms, the limits are exceeded; 0: kept.
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

// choice is a point with its score and how much it exceeds the limits.
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

// ErrSpace is wrapped by what is wrong with a space.
var ErrSpace = errors.New("not a space to search")

// Knob is one knob of a space.
type Knob struct {
	Name   string
	System bool // changes what an epoch costs, never how many there are
}

// Space holds every setting that may be chosen; combinations may be missing.
type Space struct {
	Knobs  []Knob            // in the order in which they are searched; others are the same at all points or follow one of these
	Points []tuning.Settings // unique
	Own    int               // which of Points the owner asked for
}

// CoresFirst orders knobs as they are searched: cores, other system knobs, the rest.
func CoresFirst(a, b Knob) int { return rank(a) - rank(b) }

func rank(k Knob) int {
	switch {
	case k.Name == tuning.Cores:
		return 0
	case k.System:
		return 1
	}
	return 2
}

// layout is a space by courses.
type layout struct {
	Space
	system, course []Knob
	courses        []course  // those with less first
	of             []int     // the course of each point
	cores          []float64 // of each point, 1 where no knob is called cores
	lines          [][][]int // of each point by system knob, see line
}

// course is one choice of the knobs that are not system knobs.
type course struct {
	key    string
	points []int     // ascending by system knobs
	at     []float64 // its distance from the owner's along each knob, in octaves
}

func newLayout(s Space) (layout, error) {
	l := layout{Space: s, of: make([]int, len(s.Points)), cores: make([]float64, len(s.Points))}
	if s.Own < 0 || s.Own >= len(s.Points) {
		return layout{}, fmt.Errorf("%w: the owner's settings are none of its %d points", ErrSpace, len(s.Points))
	}
	for _, k := range s.Knobs {
		if k.System {
			l.system = append(l.system, k)
		} else {
			l.course = append(l.course, k)
		}
	}
	seen, courses := map[string]bool{}, map[string]course{}
	for i, p := range s.Points {
		key := p.Only(among(s.Knobs)).Key()
		if seen[key] {
			return layout{}, fmt.Errorf("%w: %s is in it twice", ErrSpace, key)
		}
		seen[key] = true
		var at []float64
		for _, k := range l.course {
			at = append(at, octaves(p[k.Name], s.Points[s.Own][k.Name]))
		}
		key = p.Only(among(l.course)).Key()
		courses[key] = course{key, append(courses[key].points, i), at}
		l.cores[i] = 1
		if v, ok := p[tuning.Cores]; ok && v.IsNumber() {
			l.cores[i] = v.Float()
		}
	}
	l.courses = slices.SortedFunc(maps.Values(courses), func(a, b course) int {
		return cmp.Or(slices.Compare(a.at, b.at), cmp.Compare(a.key, b.key))
	})
	for c, course := range l.courses {
		slices.SortFunc(course.points, l.compare)
		for _, p := range course.points {
			l.of[p] = c
		}
	}
	for p := range l.Points {
		var of [][]int
		for _, k := range l.system {
			of = append(of, l.line(p, k.Name))
		}
		l.lines = append(l.lines, of)
	}
	return l, nil
}

func among(knobs []Knob) func(name string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(knobs, func(k Knob) bool { return k.Name == name })
	}
}

func (l layout) compare(a, b int) int {
	for _, k := range l.system {
		if c := l.Points[a][k.Name].Compare(l.Points[b][k.Name]); c != 0 {
			return c
		}
	}
	return cmp.Compare(a, b)
}

// line lists the points that differ from p in at most one system knob, ascending.
func (l layout) line(p int, knob string) []int {
	return slices.DeleteFunc(slices.Clone(l.courses[l.of[p]].points), func(q int) bool {
		return slices.ContainsFunc(l.system, func(k Knob) bool {
			return k.Name != knob && l.Points[p][k.Name] != l.Points[q][k.Name]
		})
	})
}

func (l layout) apart(p, q int) float64 {
	return tuning.Sum(l.system, func(k Knob) float64 { return math.Abs(octaves(l.Points[p][k.Name], l.Points[q][k.Name])) })
}

// octaves is how many a number lies above another one; what else differs lies one.
func octaves(v, from tuning.Value) float64 {
	switch {
	case v == from:
		return 0
	case v.IsNumber() && from.IsNumber() && v.Float() > 0 && from.Float() > 0:
		return math.Log2(v.Float() / from.Float())
	}
	return 1
}
