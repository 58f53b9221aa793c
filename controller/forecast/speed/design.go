package speed

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Rate is how much a setting does in seconds of a step: batches differ, so the shortest
// step need not be the fastest setting.
type Rate func(setting int, seconds float64) float64

// confirm: one in so many of the budget tries what the model says is fastest.
const confirm = 2

// Next is the setting of the space to measure next, given those measured so far, of
// budget in all; false: all are measured. The first is where every resource is largest;
// then those farthest from all measured, which keeps off the diagonal; and with the
// second half of the budget the fastest by the model is tried, as long as it is not
// measured yet. The least memory is left out until all else is known: a run that does
// not fit teaches little.
func (s *Space) Next(samples []Sample, budget int, rate Rate) (int, bool) {
	taken := map[int]bool{}
	for _, x := range samples {
		if i, ok := s.index[x.Settings.Key()]; ok {
			taken[i] = true
		}
	}
	open := s.open(taken)
	if len(open) == 0 {
		return 0, false
	}
	if len(taken) == 0 {
		return most(open, func(i int) float64 { return floats.Sum(s.at[i]) }), true
	}
	if model, err := s.Fit(samples); err == nil && len(samples) >= budget-budget/confirm {
		known := 0.0
		for i, v := range model.measured {
			known = max(known, rate(i, v))
		}
		fastest := func(i int) float64 {
			if e := model.at(i); !e.Fails {
				return rate(i, e.Seconds)
			}
			return 0
		}
		if i := most(open, fastest); fastest(i) > known {
			return i, true
		}
	}
	return most(open, func(i int) float64 {
		near := math.Inf(1)
		for j := range taken {
			near = min(near, floats.Distance(s.at[i], s.at[j], 2))
		}
		return near
	}), true
}

// most is the first of the settings of which a number is greatest.
func most(settings []int, of func(int) float64) int {
	best, greatest := settings[0], math.Inf(-1)
	for _, i := range settings {
		if v := of(i); v > greatest {
			best, greatest = i, v
		}
	}
	return best
}

// open are the settings that are not taken, without those of the least memory while
// there are others.
func (s *Space) open(taken map[int]bool) []int {
	var all, above []int
	for i, m := range s.memory {
		if taken[i] {
			continue
		}
		all = append(all, i)
		if m > slices.Min(s.memory) {
			above = append(above, i)
		}
	}
	if len(above) > 0 {
		return above
	}
	return all
}
