package trials

import (
	"slices"
	"time"

	"pitchpipe/driver"
)

// Lineage says which trial of which search a job is; zero: of none.
type Lineage struct {
	Search string `json:"search,omitempty"`
	Trial  int    `json:"trial,omitempty"`
}

// Lineages are those of all jobs of searches.
func (s *Service) Lineages() map[driver.JobID]Lineage {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := map[driver.JobID]Lineage{}
	for id, x := range s.shown {
		for _, t := range x.Trials {
			for _, job := range t.Jobs {
				out[job] = Lineage{id, t.Number}
			}
		}
	}
	return out
}

// Settled reports whether a search is over, its jobs included.
func (s State) Settled() bool {
	return s.Over && !slices.ContainsFunc(s.Trials, func(t Trial) bool { return t.Busy || t.Todo != "" })
}

// window is how many of the newest reports show the pace of a search.
const window = 50

// Left is about how long a search still takes at the pace of its newest epochs, its budgets included;
// false: nothing is left, or too few epochs have ended.
func (s State) Left(now time.Time) (time.Duration, bool) {
	brain := s.Searcher()
	epochs, path := brain.Left()
	var ends []float64
	var seconds float64
	for _, t := range s.Trials {
		for _, r := range t.Reports {
			ends = append(ends, r.At)
		}
		seconds += t.Last().Seconds
	}
	n := len(ends)
	if epochs == 0 || n < 2 {
		return 0, false
	}
	slices.Sort(ends)
	newest := ends[max(0, n-window):]
	pace := (newest[len(newest)-1] - newest[0]) / float64(len(newest)-1)
	left := max(path*seconds/float64(n), epochs*pace)
	spent := now.Sub(s.Created).Seconds()
	joules, hours, _ := brain.Spent()
	for _, b := range []struct{ used, most float64 }{
		{spent, s.Plan.Time.Seconds()}, {joules, float64(s.Plan.Energy)}, {hours, s.Plan.CoreHours},
	} {
		if b.most > 0 && b.used > 0 {
			left = min(left, max(0, b.most-b.used)*spent/b.used)
		}
	}
	return time.Duration(left * float64(time.Second)), true
}
