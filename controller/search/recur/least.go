package recur

import "math"

// probeLeast is the point to measure next where as little as possible is wanted: on each
// knob in turn it halves the gap between the least that is known to suffice and the most
// that is known not to.
func (t *Tuner) probeLeast() (int, bool) {
	course := t.of[t.Own]
	if t.goal.Attain > 0 {
		points := t.courses[course].points
		if top := t.top(points); !t.cells[top].known() {
			return top, true
		}
	}
	least, ok := t.least()
	if !ok {
		return 0, false
	}
	for _, line := range t.lines[least] {
		at, low := 0, -1
		for i, p := range line {
			if p == least {
				at = i
				break
			}
			if t.cells[p].known() {
				low = i
			}
		}
		if at-low > 1 {
			return line[(low+at)/2], true
		}
	}
	return 0, false
}

// top is the point with the most of everything, the first knob first.
func (t *Tuner) top(points []int) int {
	best := points[0]
	for _, p := range points[1:] {
		if t.sum(p) > t.sum(best) {
			best = p
		}
	}
	return best
}

// sum adds up the ranks of a point's values.
func (t *Tuner) sum(p int) float64 {
	n := 0.0
	for _, line := range t.lines[p] {
		for _, q := range line {
			if t.compare(q, p) < 0 {
				n++
			}
		}
	}
	return n
}

// least is the measured point that suffices with the least of the first knob, of the
// second where the first is equal, and so on.
func (t *Tuner) least() (int, bool) {
	for _, p := range t.courses[t.of[t.Own]].points { // ascending
		if t.suffices(p) {
			return p, true
		}
	}
	return 0, false
}

// suffices tells whether a measured point keeps the limits, or attains the share of full
// speed that is asked for.
func (t *Tuner) suffices(p int) bool {
	c := t.cells[p]
	if c.failed || c.n == 0 {
		return false
	}
	if t.goal.Attain == 0 {
		return p == t.Own || t.goal.Excess(c.cost(), t.cells[t.Own].cost()) == 0
	}
	fastest := math.Inf(1)
	for _, q := range t.courses[t.of[p]].points {
		if d := t.cells[q]; d.n > 0 && !d.failed {
			fastest = min(fastest, d.cost().Seconds)
		}
	}
	return c.cost().Seconds*t.goal.Attain <= fastest
}

// bestLeast is the measured point that suffices at the lowest score.
func (t *Tuner) bestLeast() (choice, bool) {
	best := none()
	best.excess = 0
	for _, p := range t.courses[t.of[t.Own]].points {
		if !t.suffices(p) {
			continue
		}
		if s := t.goal.Score(t.cells[p].cost(), t.cores[p]); s < best.score {
			best.point, best.score = p, s
		}
	}
	return best, best.point >= 0
}
