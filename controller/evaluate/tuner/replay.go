package tuner

import (
	"math"

	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// paid is what runs took.
type paid struct {
	tuning.Spent
	coreSeconds float64
	cores       float64 // summed over runs
}

func (w *world) pay(p *paid, point int, c tuning.Spent) {
	p.Spent = p.Plus(c)
	p.coreSeconds += c.Seconds * w.cores(point)
}

// ratio compares what runs took with n runs under the owner's settings, in what the goal
// minimises.
func (w *world) ratio(p paid, n float64) float64 {
	own := w.expected(w.space.Own).Times(n)
	cores := w.cores(w.space.Own)
	switch {
	case w.goal.Attain > 0:
		return p.cores / (n * cores)
	case w.goal.Cores:
		return p.coreSeconds / (own.Seconds * cores)
	}
	return math.Exp(w.goal.Score(p.Spent, 1) - w.goal.Score(own, 1))
}

// share compares the expected cost of one point with that of the owner's.
func (w *world) share(point int) float64 {
	own := w.space.Own
	if w.goal.Attain > 0 {
		return w.cores(point) / w.cores(own)
	}
	return math.Exp(w.goal.Score(w.expected(point), w.cores(point)) - w.goal.Score(w.expected(own), w.cores(own)))
}

// patience is how many attempts a run is given to reach its end at all.
const patience = 20

// replay lets a tuner choose for n returns of the job: what it paid, and what it would
// choose from then on.
func (w *world) replay(t *recur.Tuner, n int) (paid, int) {
	var sum paid
	for range n {
		point := t.Course()
		for range patience {
			last, reached := w.run(t, point, &sum)
			sum.cores += w.cores(last)
			if reached {
				break
			}
			point = t.Best()
		}
	}
	return sum, t.Best()
}

// run lets one run happen, epoch by epoch: the point of its last epoch, and whether it
// reached its end.
func (w *world) run(t *recur.Tuner, point int, sum *paid) (last int, reached bool) {
	w.begin()
	var spent tuning.Spent
	progress := 0.0
	for n := 1.0; ; n++ {
		p := t.Epoch(point)
		c := w.cost(p)
		if part := untilStop(t, point, spent, c); part < 1 {
			w.pay(sum, p, c.Times(part))
			t.Missed(point)
			return p, false
		}
		w.pay(sum, p, c)
		if w.cells[p].failed {
			t.Failed(p)
			return p, false
		}
		spent = spent.Plus(c)
		t.Measured(p, c)
		progress += 1 / w.epochs(p)
		switch {
		case progress >= 1-1e-9:
			t.Reached(point, n)
			return p, true
		case n >= w.longest():
			t.Missed(point)
			return p, false
		}
	}
}

// untilStop is the share of an epoch after which a run that has cost so much is stopped;
// 1: it is not.
func untilStop(t *recur.Tuner, point int, spent, epoch tuning.Spent) float64 {
	stops := func(part float64) bool { return t.Stops(point, spent.Plus(epoch.Times(part))) }
	if !stops(1) {
		return 1
	}
	low, high := 0.0, 1.0
	for range 20 {
		if mid := (low + high) / 2; stops(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// keeps tells whether a point keeps the limits in expectation.
func (w *world) keeps(point int) bool {
	if w.goal.Attain > 0 {
		fastest := math.Inf(1)
		for p := range w.cells {
			if w.reliable(p) {
				fastest = min(fastest, w.expected(p).Seconds)
			}
		}
		return w.reliable(point) && w.expected(point).Seconds*w.goal.Attain <= fastest
	}
	return point == w.space.Own || w.reliable(point) && w.goal.Excess(w.expected(point), w.expected(w.space.Own)) <= 1e-9
}

// oracle is the best point in expectation of those that keep the limits, among the given
// ones; the owner's where none does.
func (w *world) oracle(points []int) int {
	best, least := w.space.Own, math.Inf(1)
	for _, p := range points {
		if s := w.share(p); w.keeps(p) && w.reliable(p) && s < least {
			best, least = p, s
		}
	}
	return best
}

func (w *world) all() []int {
	out := make([]int, len(w.cells))
	for i := range out {
		out[i] = i
	}
	return out
}
