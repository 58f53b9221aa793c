package window_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/window"
)

// The samples of all attempts together are bounded, also on a node of many small jobs.
func TestRingsAreShorterWhileThereAreManyAttempts(t *testing.T) {
	t.Parallel()
	s := window.New(window.Config{Samples: 8, Keep: time.Second})
	second := 0
	look := func(what string, want ...float64) {
		t.Helper()
		w, _ := s.Window("0", 1, 0, 0, all)
		var got []float64
		for _, sample := range w.Samples {
			got = append(got, sample.Values[api.ColThreads])
		}
		if diff := cmp.Diff(want, got); diff != "" || w.Dropped != uint64(second-len(got)) {
			t.Errorf("%s: %d dropped of %d, samples (-want +got):\n%s", what, w.Dropped, second, diff)
		}
	}
	sample := func(n int) {
		for range n {
			second++
			s.Append(key("0", 1), at(second), map[string]float64{api.ColThreads: float64(second), api.ColRSS: 7}, nil)
		}
	}
	begin(t, s, "0", 1, 0)
	sample(11)
	look("alone", 4, 5, 6, 7, 8, 9, 10, 11)
	for i := 1; i <= 300; i++ {
		begin(t, s, strconv.Itoa(i), 1, 0)
	}
	look("one of 301", 10, 11)
	sample(3)
	look("one of 301, later", 13, 14)
	for i := 1; i <= 300; i++ {
		s.End(key(strconv.Itoa(i), 1), at(1), nil)
	}
	s.Prune(at(5))
	sample(3)
	look("alone again", 13, 14, 15, 16, 17)
	sample(4)
	look("and its ring turned", 14, 15, 16, 17, 18, 19, 20, 21)
}
