package searcher

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
)

// Loss is what is minimised of a value.
func (s *Searcher) Loss(v float64) float64 {
	if s.Minimize {
		return v
	}
	return -v
}

func (s *Searcher) reaches(v float64) bool {
	return s.Target != nil && s.Loss(v) <= s.Loss(*s.Target)
}

// cost is what a trial used up to a report, by the objective. It compares with what lacks as much: joules that were
// measured compare with no modelled ones, and seconds, where joules are unknown, with neither.
func (s *Searcher) cost(r Report) (lacks int, amount float64) {
	m := tuning.Measure{Objective: cmp.Or(s.Objective, tuning.Energy), Weight: *cmp.Or(s.Weight, new(1.0))}
	joules, seconds := m.Weights()
	switch {
	case s.Objective == tuning.Cost:
		return 0, r.CoreHours
	case joules == 0:
		return 0, r.Seconds
	case r.Joules == nil:
		return 2, r.Seconds
	case tuning.IsModelled(r.Source):
		lacks = 1
	}
	return lacks, math.Pow(*r.Joules, joules) * math.Pow(r.Seconds, seconds)
}

// dearer reports whether a trial has used more without the target than another up to it: more time where the
// joules of one of the two are unknown, or of another source.
func (s *Searcher) dearer(used Report) bool {
	return slices.ContainsFunc(s.Trials, func(o Trial) bool {
		r := o.Decisive()
		without, most := s.cost(r)
		lacks, amount := s.cost(used)
		if lacks != without || used.Source != r.Source && s.Objective != tuning.Cost {
			most, amount = r.Seconds, used.Seconds
		}
		return o.State == Done && o.Counted > 0 && s.reaches(r.Value) && amount > most
	})
}

// Counts says how many trials are in each of some states.
func (s *Snapshot) Counts(states ...State) string {
	var out []string
	for _, state := range states {
		if n := tuning.Count(s.Trials, func(t Trial) bool { return t.State == state }); n > 0 {
			out = append(out, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(out, ", ")
}

// Whole reports whether a report is of the epochs of a whole trial. How many follow them depends on how soon its job
// ends.
func (s *Searcher) Whole(r Report) bool { return s.Epochs == 0 || r.Epoch <= s.Epochs }

// Best is the epoch of a trial at which it was best; the zero Report where it has none.
func (s *Searcher) Best(t *Trial) (best Report) {
	for i, r := range t.Reports {
		if i == 0 || s.Whole(r) && s.Loss(r.Value) < s.Loss(best.Value) {
			best = r
		}
	}
	return best
}

// reached is the first report with the target, which the trial has.
func (s *Searcher) reached(t *Trial) Report {
	r, _ := tuning.First(t.Reports, func(r Report) bool { return s.reaches(r.Value) })
	return r
}

// Ranking lists the trials that have a report, the best first: those that reached the target by what they
// used up to it, where that is unknown last, and the others by their best value.
func (s *Searcher) Ranking() []*Trial {
	var out []*Trial
	best := make([]Report, len(s.Trials)) // by number
	for i := range s.Trials {
		if t := &s.Trials[i]; len(t.Reports) > 0 {
			out, best[i] = append(out, t), s.Best(t)
		}
	}
	slices.SortStableFunc(out, func(a, b *Trial) int {
		x, y := best[a.Number-1].Value, best[b.Number-1].Value
		if s.reaches(x) && s.reaches(y) {
			lacks, amount := s.cost(s.reached(a))
			without, other := s.cost(s.reached(b))
			return cmp.Or(cmp.Compare(lacks, without), cmp.Compare(amount, other))
		}
		return cmp.Compare(s.Loss(x), s.Loss(y))
	})
	return out
}

// Left is about how many epochs the search still trains, and how many of them one after the other at
// least, without those of some trials. Both are 0 once nothing runs or begins.
func (s *Searcher) Left(without func(trial int) bool) (epochs, path float64) {
	if s.Closing != "" || s.Over {
		return 0, 0
	}
	whole, furthest := false, 0
	for i := range s.Trials {
		t := &s.Trials[i]
		whole, furthest = whole || t.State == Done, max(furthest, t.Last().Epoch)
		if t.State == Running && !without(t.Number) {
			epochs += s.Search.Left(s.rungs[s.next(t):], t.Last().Epoch)
			path = max(path, float64(s.NextRung(t)-t.Last().Epoch))
		}
	}
	fresh := max(s.Search.Trials-len(s.Trials), 0)
	epochs += float64(fresh) * s.Search.Left(s.rungs, 0)
	if !whole { // one of them trains to the end
		path = max(path, float64(s.Epochs-furthest))
	}
	return max(epochs, path), path
}
