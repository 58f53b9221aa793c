package halving

import (
	"cmp"
	"math"
	"slices"
)

// Ladder are the rungs of a search.
type Ladder struct {
	Rungs  []int // epochs, ascending; the last is a full run
	Factor int   // a rung promotes the best of this many, at least 2
}

// Climb is the ladder of a search over runs of so many epochs: rungs a factor apart
// down from the full run, of which the lowest has at least the least number of epochs.
func Climb(full, least, factor int) Ladder {
	factor = max(factor, 2)
	l := Ladder{Factor: factor, Rungs: []int{full}}
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

// Trial is one setting under way.
type Trial struct {
	At     int       // the caller's number of the settings
	Losses []float64 // at each rung that it reached, in order; less is better, NaN: it failed
}

// Promote is the index of the trial that should run on to its next rung, the highest
// rung first, or -1 where a new trial should begin. Among those that reached a rung the
// best 1/Factor go on; ties go to the earlier trial.
func (l Ladder) Promote(trials []Trial) int {
	for rung := len(l.Rungs) - 2; rung >= 0; rung-- {
		var there []int
		for i, t := range trials {
			if len(t.Losses) > rung && !math.IsNaN(t.Losses[rung]) {
				there = append(there, i)
			}
		}
		slices.SortStableFunc(there, func(i, j int) int { return cmp.Compare(trials[i].Losses[rung], trials[j].Losses[rung]) })
		reached := 0
		for _, t := range trials {
			if len(t.Losses) > rung {
				reached++
			}
		}
		for _, i := range there[:min(reached/l.Factor, len(there))] {
			if len(trials[i].Losses) == rung+1 {
				return i
			}
		}
	}
	return -1
}
