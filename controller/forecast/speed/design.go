package speed

import (
	"math"
	"slices"
)

func sortNumbers(x []float64) { slices.Sort(x) }

// Rate is how much a setting does in seconds of a step: batches differ, so the shortest
// step need not be the fastest setting.
type Rate func(setting int, seconds float64) float64

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
		return s.largest(open), true
	}
	if model, err := s.Fit(samples); err == nil && len(samples) >= budget-budget/confirm {
		if i, ok := model.fastest(open, taken, rate); ok {
			return i, true
		}
	}
	return s.farthest(open, taken), true
}

// confirm: one in so many of the budget tries what the model says is fastest.
const confirm = 2

// open are the settings that are not taken, without those of the least memory while
// there are others.
func (s *Space) open(taken map[int]bool) []int {
	least := math.Inf(1)
	for _, p := range s.points {
		least = min(least, p.memory)
	}
	var all, above []int
	for i, p := range s.points {
		if taken[i] {
			continue
		}
		all = append(all, i)
		if p.memory > least {
			above = append(above, i)
		}
	}
	if len(above) > 0 {
		return above
	}
	return all
}

func (s *Space) largest(open []int) int {
	best, most := open[0], math.Inf(-1)
	for _, i := range open {
		var sum float64
		for _, x := range s.at[i] {
			sum += x
		}
		if sum > most {
			best, most = i, sum
		}
	}
	return best
}

func (s *Space) farthest(open []int, taken map[int]bool) int {
	best, far := open[0], -1.0
	for _, i := range open {
		near := math.Inf(1)
		for j := range taken {
			near = min(near, s.distance(i, j))
		}
		if near > far {
			best, far = i, near
		}
	}
	return best
}

// fastest is the setting with the highest rate by the model; false where one that is
// measured is as fast as any that is not.
func (m *Model) fastest(open []int, taken map[int]bool, rate Rate) (int, bool) {
	var known float64
	for i, v := range m.measured {
		known = max(known, rate(i, v))
	}
	best, most, found := 0, known, false
	for _, i := range open {
		e := m.at(i)
		if r := rate(i, e.Seconds); !e.Fails && !taken[i] && r > most {
			best, most, found = i, r, true
		}
	}
	return best, found
}
