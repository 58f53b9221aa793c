package recur

import (
	"math"
	"slices"

	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

// choiceAt scores a measured point for a run of so many epochs.
func (t *Tuner) choiceAt(p int, epochs float64) choice {
	c := t.cells[p]
	if c.failed || c.n == 0 {
		return choice{p, math.Inf(1), math.Inf(1)}
	}
	cost := c.cost().Times(epochs)
	out := choice{point: p, score: t.goal.Score(cost, t.cores[p])}
	switch {
	case t.goal.Attain > 0:
		out.excess = over(c.cost().Seconds, t.fastest(), 1/t.goal.Attain)
	case p != t.Own && t.goal.Limited():
		own, ok := t.ownCost()
		if !ok { // within the first run: an epoch against an epoch
			own = t.cells[t.Own].cost().Times(epochs)
		}
		out.excess = t.goal.Excess(cost, own)
	}
	return out
}

// fastest are the seconds of the fastest epoch that was measured.
func (t *Tuner) fastest() float64 {
	least := math.Inf(1)
	for _, c := range t.cells {
		if c.n > 0 && !c.failed {
			least = min(least, c.cost().Seconds)
		}
	}
	return least
}

// pick is the best measured point of a course, for runs of so many epochs.
func (t *Tuner) pick(course int, epochs float64) (choice, bool) {
	best := none()
	for _, p := range t.courses[course].points {
		if c := t.choiceAt(p, epochs); !t.isClosed(p) && c.before(best) {
			best = c
		}
	}
	return best, best.point >= 0
}

// expectedEpochs of a course: the mean of those that reached their end, else of the
// owner's.
func (t *Tuner) expectedEpochs(course int) float64 {
	for _, c := range []int{course, t.of[t.Own]} {
		if a := t.arms[c]; a.reached > 0 {
			return a.mean()
		}
	}
	return 1
}

// Epoch is the point under which the next epoch of a run of the course of the given
// point goes on: one that is still to be measured, or the best one measured.
func (t *Tuner) Epoch(point int) int {
	course := t.of[point]
	next, ok := t.probe(course)
	if ok && (t.limit == 0 || t.tried() < t.limit || t.cells[next].known() || next == t.Own) {
		return next
	}
	if c, ok := t.pick(course, t.expectedEpochs(course)); ok {
		return c.point
	}
	return next
}

// tried counts the points besides the owner's that were measured.
func (t *Tuner) tried() int {
	n := 0
	for p, c := range t.cells {
		if c.known() && p != t.Own {
			n++
		}
	}
	return n
}

// probe is the point of a course to measure next. False: none is worth it.
func (t *Tuner) probe(course int) (int, bool) {
	if course == t.of[t.Own] && !t.cells[t.Own].known() {
		return t.Own, true
	}
	if points := t.courses[course].points; t.goal.Attain > 0 && !t.cells[points[len(points)-1]].known() {
		return points[len(points)-1], true // the most of everything: full speed
	}
	best, ok := t.pick(course, t.expectedEpochs(course))
	if !ok {
		return t.start(course)
	}
	for _, line := range t.lines[best.point] {
		if p, ok := t.valley(line, best.point); ok {
			return p, true
		}
	}
	if t.goal.Least() {
		return 0, false
	}
	for _, line := range t.lines[best.point] {
		if p, ok := t.surprise(line, best); ok {
			return p, true
		}
	}
	return 0, false
}

// roughness is how far the cost of an epoch may depart from a line between two values
// of a knob, in natural logarithms.
const roughness = 0.03

// surprise is a point of a line that does not look like the best one, and may be, since
// a line has bumps: what that would save over the runs to come outweighs an epoch under
// it.
func (t *Tuner) surprise(line []int, best choice) (int, bool) {
	at, most := -1, 0.0
	epochs := t.expectedEpochs(t.of[best.point])
	level := t.choiceAt(best.point, 1).score
	for i, p := range line {
		if t.cells[p].known() {
			continue
		}
		guess, ok := t.guess(line, i)
		if !ok {
			continue
		}
		gain := t.horizon()*propose.Improvement(guess-level, roughness) - max(math.Exp(guess-level)-1, 0)/epochs
		if gain > most {
			at, most = p, gain
		}
	}
	return at, at >= 0
}

// guess is the score of an epoch at a place of a line, from the nearest points that were
// measured: between two of them, or beyond one as it is there.
func (t *Tuner) guess(line []int, i int) (float64, bool) {
	score := func(step int) (float64, int, bool) {
		for j := i + step; j >= 0 && j < len(line); j += step {
			if c := t.cells[line[j]]; c.n > 0 && !c.failed {
				return t.choiceAt(line[j], 1).score, step * (j - i), true
			}
		}
		return 0, 0, false
	}
	a, na, okA := score(-1)
	b, nb, okB := score(1)
	switch {
	case okA && okB:
		return (a*float64(nb) + b*float64(na)) / float64(na+nb), true
	case t.weighed != nil && max(na, nb) > 1:
		return 0, false // a whole run is too much for what lies far beyond all that is known
	case okA:
		return a, true
	}
	return b, okB
}

// start is where a course that was never run is measured first: under the system settings
// that are nearest to those of the best course.
func (t *Tuner) start(course int) (int, bool) {
	from := t.Own
	if best := t.leader(); best.point >= 0 {
		from = best.point
	}
	p := t.twin(from, course)
	if !t.cells[p].known() && !t.isClosed(p) {
		return p, true
	}
	for _, q := range t.courses[course].points { // what was near failed
		if !t.cells[q].known() && !t.isClosed(q) {
			return q, true
		}
	}
	return p, false
}

// bulge is how far the cost of an epoch may depart from a line between two values of a
// knob for each octave between them, beside roughness.
const bulge = 0.1

// valley is the point of a line to measure next, where the best one measured is given and
// the score along the line has one valley: in the middle of the wider gap beside it, and at
// most an octave away where there is one. Between two that were measured the valley is
// followed at the price of an epoch, but not always at that of a whole run.
func (t *Tuner) valley(line []int, best int) (int, bool) {
	at, low, high := slices.Index(line, best), -1, len(line)
	for i, p := range line {
		switch {
		case !t.cells[p].known():
		case i < at:
			low = i
		case i > at && high == len(line):
			high = i
		}
	}
	below, above := at-low-1, high-at-1
	if t.goal.Least() { // what has more than what suffices is never less
		return line[(low+at)/2], below > 0
	}
	if below <= 0 && above <= 0 {
		return 0, false
	}
	by, to := -1, (low+at+1)/2
	if above > below {
		by, to = 1, (at+high)/2
	}
	for to != at+by && t.apart(line[at], line[to]) > stride+1e-9 {
		to -= by
	}
	bounded := by < 0 && low >= 0 || by > 0 && high < len(line)
	return line[to], t.weighed == nil || !bounded || t.between(line, at, to)
}

// between reports whether a point of a line between two that were measured, the one of which
// is the best, is worth a whole run.
func (t *Tuner) between(line []int, at, to int) bool {
	guess, ok := t.guess(line, to)
	if !ok {
		return true
	}
	gap := guess - t.choiceAt(line[at], 1).score
	return t.horizon()*propose.Improvement(gap, roughness+bulge*t.apart(line[at], line[to])) > math.Expm1(max(gap, 0))
}

// CoresFirst orders knobs as they are searched: cores, other system knobs, then the
// rest, each as given.
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
