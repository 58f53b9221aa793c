package recur

import (
	"math"
	"slices"

	"pitchpipe/controller/search/propose"
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
		fastest := math.Inf(1)
		for _, other := range t.cells {
			if other.n > 0 && !other.failed {
				fastest = min(fastest, other.cost().Seconds)
			}
		}
		out.excess = over(c.cost().Seconds, fastest, 1/t.goal.Attain)
	case p != t.Own && t.goal.Limited():
		own, ok := t.ownCost()
		if !ok { // within the first run: an epoch against an epoch
			own = t.cells[t.Own].cost().Times(epochs)
		}
		out.excess = t.goal.Excess(cost, own)
	}
	return out
}

// pick is the best measured point of a course, for runs of so many epochs; below 0: none.
func (t *Tuner) pick(course int, epochs float64) choice {
	best := none()
	for _, p := range t.courses[course].points {
		if c := t.choiceAt(p, epochs); !t.cells[p].closed && c.before(best) {
			best = c
		}
	}
	return best
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
	if ok && (!t.exhausted() || t.cells[next].known() || next == t.Own) {
		return next
	}
	if c := t.pick(course, t.expectedEpochs(course)); c.point >= 0 {
		return c.point
	}
	return next
}

// exhausted reports whether as many points besides the owner's were measured as may be.
func (t *Tuner) exhausted() bool {
	n := 0
	for p, c := range t.cells {
		if c.known() && p != t.Own {
			n++
		}
	}
	return t.limit > 0 && n >= t.limit
}

// probe is the point of a course to measure next. False: none is worth it.
func (t *Tuner) probe(course int) (int, bool) {
	if course == t.of[t.Own] && !t.cells[t.Own].known() {
		return t.Own, true
	}
	if points := t.courses[course].points; t.goal.Attain > 0 && !t.cells[points[len(points)-1]].known() {
		return points[len(points)-1], true // the most of everything: full speed
	}
	best := t.pick(course, t.expectedEpochs(course))
	if best.point < 0 {
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
// that are nearest to those of the best course, of which nothing is known.
func (t *Tuner) start(course int) (int, bool) {
	from := t.Own
	if best := t.leader(); best.point >= 0 {
		from = best.point
	}
	points := t.courses[course].points
	at, least := points[0], math.Inf(1)
	for _, p := range points {
		if d := t.apart(from, p); d < least && !t.cells[p].known() && !t.cells[p].closed {
			at, least = p, d
		}
	}
	return at, !math.IsInf(least, 1)
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
	guess, ok := t.guess(line, to)
	if t.weighed == nil || !bounded || !ok {
		return line[to], true
	}
	gap := guess - t.choiceAt(line[at], 1).score
	return line[to], t.horizon()*propose.Improvement(gap, roughness+bulge*t.apart(line[at], line[to])) > math.Expm1(max(gap, 0))
}
