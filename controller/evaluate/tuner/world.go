package tuner

import (
	"math"
	"math/rand/v2"

	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// world lets runs of one table happen. Only it knows what was recorded.
type world struct {
	table
	goal recur.Goal
	rng  *rand.Rand
	luck float64 // of the present run: which of the repeats it is
}

// begin draws which of the repeats the next run is.
func (w *world) begin() { w.luck = w.rng.Float64() }

// nth is which of a point's repeats the present run is.
func (w *world) nth(point int) int {
	n := len(w.cells[point].repeats)
	return min(int(w.luck*float64(n)), n-1)
}

// epochs is how many a run under one point takes by the luck of the present run.
func (w *world) epochs(point int) float64 { return w.cells[point].repeats[w.nth(point)] }

// longest is how many epochs a run may take at most, whatever stops it or not.
func (w *world) longest() float64 {
	if w.maxEpochs > 0 {
		return w.maxEpochs
	}
	longest := 1.0
	for _, c := range w.cells {
		for _, n := range c.repeats {
			if !math.IsInf(n, 1) {
				longest = max(longest, n)
			}
		}
	}
	return longest
}

// whole runs under one point throughout: its cost, and whether it reached its end before
// it was stopped at the given score.
func (w *world) whole(point int, stop float64) (tuning.Spent, bool) {
	w.begin()
	c := w.cells[point]
	if c.failed {
		return w.cost(point), false
	}
	n, reached := w.epochs(point), true
	if math.IsInf(n, 1) {
		n, reached = w.longest(), false
	}
	one := w.goal.Score(w.cost(point), w.cores(point))
	if one+w.powers()*math.Log(n) > stop {
		n, reached = math.Exp((stop-one)/w.powers()), false
	}
	return w.cost(point).Times(n), reached
}

// powers is how often the score counts a factor that seconds and joules share.
func (w *world) powers() float64 {
	if w.goal.Least() {
		return 1
	}
	return w.goal.Degree()
}

// cost is that of an epoch of the present run, by its luck: what is paid is what is shown.
func (w *world) cost(point int) tuning.Spent {
	if runs := w.cells[point].runs; runs != nil && runs[w.nth(point)].Seconds > 0 {
		return runs[w.nth(point)]
	}
	return w.usual(point)
}

// usual is the mean cost of an epoch. A point that did not run and tells none costs what
// the owner's does.
func (w *world) usual(point int) tuning.Spent {
	c := w.cells[point].epoch
	if !(c.Seconds > 0) {
		return w.cells[w.space.Own].epoch
	}
	return c
}

func (w *world) cores(point int) float64 { return coresOf(w.space, point) }

func coresOf(s recur.Space, point int) float64 {
	if v, ok := s.Points[point]["cores"]; ok && v.IsNumber() {
		return v.Float()
	}
	return 1
}

// expected is the mean cost of a run under one point; one that never reaches its end
// costs as long as it may take.
func (w *world) expected(point int) tuning.Spent {
	c := w.cells[point]
	sum := 0.0
	for _, n := range c.repeats {
		if math.IsInf(n, 1) {
			n = w.longest()
		}
		sum += n / float64(len(c.repeats))
	}
	return w.usual(point).Times(sum)
}

// reliable tells whether every repeat of a point reached its end.
func (w *world) reliable(point int) bool {
	c := w.cells[point]
	for _, n := range c.repeats {
		if math.IsInf(n, 1) {
			return false
		}
	}
	return !c.failed
}
