package reconcile

import (
	"testing"
	"time"

	"pitchpipe/driver"
)

// Attempts that exporters know as one are told apart by when the next began; others need
// no bounds.
func TestAttemptsOfOneUnitAreBoundedByTheirStarts(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	p := &reconciliation{job: driver.Job{Attempts: []driver.Attempt{
		{Number: 1, Unit: "a.main", Started: at(1), Ended: at(4)},
		{Number: 2, Unit: "a.main", Started: at(5), Ended: at(8)},
		{Number: 3, Unit: "b.main", Started: at(9)},
		{Number: 4, Started: at(12)},
		{Number: 5, Started: at(13)},
	}}}
	for i, want := range [][2]time.Time{{{}, at(5)}, {at(5), {}}, {}, {}, {}} {
		if from, to := p.bounds(i + 1); !from.Equal(want[0]) || !to.Equal(want[1]) {
			t.Errorf("attempt %d: from %v to %v, want %v", i+1, from, to, want)
		}
	}
}
