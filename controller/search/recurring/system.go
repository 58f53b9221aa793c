package recurring

import (
	"math"
	"slices"

	"pitchpipe/controller/search/propose"
)

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

func (t *Tuner) pick(course int, epochs float64) choice {
	best := none()
	for _, p := range t.courses[course].points {
		if c := t.choiceAt(p, epochs); !t.cells[p].closed && c.before(best) {
			best = c
		}
	}
	return best
}

func (t *Tuner) expectedEpochs(course int) float64 {
	for _, c := range []int{course, t.of[t.Own]} {
		if a := t.arms[c]; a.reached > 0 {
			return a.mean()
		}
	}
	return 1
}

// Epoch is the point of the next epoch of a run: one that is to be measured, or the best measured.
func (t *Tuner) Epoch(point int) int {
	course := t.of[point]
	next := t.probe(course)
	if next >= 0 && (!t.exhausted() || t.cells[next].known() || next == t.Own) {
		return next
	}
	if c := t.pick(course, t.expectedEpochs(course)); c.point >= 0 {
		return c.point
	}
	return t.courses[course].points[0]
}

func (t *Tuner) exhausted() bool {
	n := 0
	for p, c := range t.cells {
		if c.known() && p != t.Own {
			n++
		}
	}
	return t.limit > 0 && n >= t.limit
}

// probe is the point of a course to measure next; below 0: none is worth it.
func (t *Tuner) probe(course int) int {
	if course == t.of[t.Own] && !t.cells[t.Own].known() {
		return t.Own
	}
	if points := t.courses[course].points; t.goal.Attain > 0 && !t.cells[points[len(points)-1]].known() {
		return points[len(points)-1] // the most of everything: full speed
	}
	best := t.pick(course, t.expectedEpochs(course)).point
	if best < 0 {
		return t.start(course)
	}
	for _, search := range []func(line []int, best int) int{t.valley, t.surprise} {
		for _, line := range t.lines[best] {
			if p := search(line, best); p >= 0 {
				return p
			}
		}
	}
	return -1
}

// roughness is how far the cost may depart from a line between two values, in natural logarithms.
const roughness = 0.03

// surprise is a point of a line that does not look like the best one, and may be: a line has bumps.
func (t *Tuner) surprise(line []int, best int) int {
	at, most := -1, 0.0
	epochs := t.expectedEpochs(t.of[best])
	level := t.choiceAt(best, 1).score
	for i, p := range line {
		if t.cells[p].known() || t.goal.Least() {
			continue
		}
		gap := t.guess(line, i) - level
		gain := t.horizon()*propose.Improvement(gap, roughness) - max(math.Exp(gap)-1, 0)/epochs
		if gain > most {
			at, most = p, gain
		}
	}
	return at
}

// guess is the score of an epoch from the nearest measured points of a line: between two of them,
// or beyond one as it is there. NaN: none.
func (t *Tuner) guess(line []int, i int) float64 {
	score := func(step int) (score float64, steps int) {
		for j := i + step; j >= 0 && j < len(line); j += step {
			if c := t.cells[line[j]]; c.n > 0 && !c.failed {
				return t.choiceAt(line[j], 1).score, step * (j - i)
			}
		}
		return math.NaN(), 0
	}
	a, na := score(-1)
	b, nb := score(1)
	switch {
	case na > 0 && nb > 0:
		return (a*float64(nb) + b*float64(na)) / float64(na+nb)
	case t.weighed != nil && max(na, nb) > 1:
		return math.NaN() // a whole run is too much for what lies far beyond all that is known
	case na > 0:
		return a
	}
	return b
}

// start is where a course that was never run is measured first: nearest to the best course.
func (t *Tuner) start(course int) int {
	from := t.Own
	if best := t.leader(); best.point >= 0 {
		from = best.point
	}
	at, least := -1, math.Inf(1)
	for _, p := range t.courses[course].points {
		if d := t.apart(from, p); d < least && !t.cells[p].known() && !t.cells[p].closed {
			at, least = p, d
		}
	}
	return at
}

// bulge is roughness for each octave between the values.
const bulge = 0.1

// valley is the point to measure next of a line with one valley: in the middle of the wider gap
// next to the best, and at most an octave away. Between two measured points it is followed at the
// price of an epoch, but not always at that of a whole run.
func (t *Tuner) valley(line []int, best int) int {
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
	switch {
	case t.goal.Least() && below > 0: // what has more than what suffices is never less
		return line[(low+at)/2]
	case t.goal.Least(), below <= 0 && above <= 0:
		return -1
	}
	by, to := -1, (low+at+1)/2
	if above > below {
		by, to = 1, (at+high)/2
	}
	for to != at+by && t.apart(line[at], line[to]) > stride+1e-9 {
		to -= by
	}
	gap := t.guess(line, to) - t.choiceAt(best, 1).score
	gain := t.horizon() * propose.Improvement(gap, roughness+bulge*t.apart(best, line[to]))
	bounded := by < 0 && low >= 0 || by > 0 && high < len(line)
	if t.weighed != nil && bounded && gain <= math.Expm1(max(gap, 0)) {
		return -1
	}
	return line[to]
}
