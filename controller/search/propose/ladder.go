package propose

import (
	"cmp"
	"math"
	"slices"
)

// Ladder runs the best of each rung on to the next one, and begins what a method says
// otherwise: asynchronous successive halving (ASHA; Li et al., "A System for Massively
// Parallel Hyperparameter Tuning", 2020).
type Ladder struct {
	Rungs  []int // epochs, ascending; the last is a full run
	Factor int   // a rung promotes the best of this many, at least 2
	Fresh  Method
}

// Climb is the ladder of a search over runs of so many epochs: rungs a factor apart
// down from the full run, of which the lowest has at least the least number of epochs.
func Climb(full, least, factor int, fresh Method) Ladder {
	factor = max(factor, 2)
	l := Ladder{Rungs: []int{full}, Factor: factor, Fresh: fresh}
	for length := float64(full) / float64(factor); ; length /= float64(factor) {
		rung := int(math.Round(length))
		if rung < max(least, 1) || rung >= l.Rungs[len(l.Rungs)-1] {
			break
		}
		l.Rungs = append(l.Rungs, rung)
	}
	slices.Reverse(l.Rungs)
	return l
}

// Next is the trial that runs on to its next rung, the highest rung first, or else what the
// ladder's method begins.
func (l Ladder) Next(trials []Trial) (int, error) {
	if i := l.promote(trials); i >= 0 {
		return trials[i].At, nil
	}
	return l.Fresh.Next(trials)
}

// promote is the index of the trial that runs on, -1: none. Among those that reached a rung
// the best 1/Factor go on; ties go to the earlier trial.
func (l Ladder) promote(trials []Trial) int {
	for rung := len(l.Rungs) - 2; rung >= 0; rung-- {
		var there []int
		reached := 0
		for i, t := range trials {
			if len(t.Losses) <= rung {
				continue
			}
			reached++
			if !math.IsNaN(t.Losses[rung]) {
				there = append(there, i)
			}
		}
		slices.SortStableFunc(there, func(i, j int) int { return cmp.Compare(trials[i].Losses[rung], trials[j].Losses[rung]) })
		for _, i := range there[:min(reached/l.Factor, len(there))] {
			if len(trials[i].Losses) == rung+1 && !trials[i].Running {
				return i
			}
		}
	}
	return -1
}
