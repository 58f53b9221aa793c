package fault_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pitchpipe/test/fault"
)

// What misses is tried again, what befalls all comes alone, and what is left when the jobs
// are at their end is given back.
func TestARoundDoesItsFaultsUntilNothingIsLeftToMeet(t *testing.T) {
	t.Parallel()
	r := fault.NewRound(1, 7)
	var mu sync.Mutex
	tries := map[string]int{}
	var busy, jobs atomic.Int64
	jobs.Store(9)
	left := r.Inject(fault.Work{
		Queues: [][]fault.Fault{{{Kind: "misses"}, {Kind: "hits"}}, {{Kind: "ends"}, {Kind: "never"}}, {{Kind: "alone"}}},
		Inflict: func(f *fault.Fault) ([]string, error) {
			n := busy.Add(1)
			defer busy.Add(-1)
			if f.Kind == "alone" && n > 1 {
				t.Error("it did not come alone")
			}
			mu.Lock()
			tries[f.Kind]++
			first := tries[f.Kind] == 1
			mu.Unlock()
			switch {
			case f.Kind == "misses" && first:
				return nil, fault.ErrMissed
			case f.Kind == "ends":
				jobs.Store(0)
				for !r.Over() {
					time.Sleep(time.Millisecond)
				}
			}
			f.Point = "there"
			return []string{"job"}, nil
		},
		Left: func() int { return int(jobs.Load()) }, Moved: func() bool { return true }, Log: t.Logf,
	})
	if len(left) == 0 || !slices.ContainsFunc(left, func(f fault.Fault) bool { return f.Kind == "never" }) || tries["never"] > 0 {
		t.Errorf("left %+v after %v, want what was to come when the jobs had ended", left, tries)
	}
	for _, s := range r.Strikes() {
		if s.Round != 7 || s.Point != "there" || !slices.Equal(s.Touched, []string{"job"}) {
			t.Errorf("strike %+v", s)
		}
	}
	if len(r.Strikes()) == 0 || len(r.Complaints()) != 0 {
		t.Errorf("strikes %+v, complaints %q", r.Strikes(), r.Complaints())
	}
}
