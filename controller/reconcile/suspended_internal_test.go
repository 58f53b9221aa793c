package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// The scheduler says for how long in all a job stood still; the epochs say after when.
func TestWhenAJobWasSuspended(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	p := &reconciliation{rec: &Record{Course: Course{Runs: []Run{{Attempt: 1}, {Attempt: 2}}}}}
	for _, look := range []struct {
		name  string
		now   int64
		stood time.Duration
		epoch int64 // that ended by then
		want  []tuning.Span
	}{
		{"never so far", 20, 0, 0, nil},
		{"in its first epoch", 30, 5 * time.Second, 31, []tuning.Span{{From: at(10), To: at(30)}}},
		{"not again", 40, 5 * time.Second, 35, []tuning.Span{{From: at(10), To: at(30)}}},
		{"again, and it stands still", 120, 65 * time.Second, 0, []tuning.Span{{From: at(10), To: at(30)}, {From: at(35), To: at(120)}}},
		{"and still does", 180, 125 * time.Second, 0, []tuning.Span{{From: at(10), To: at(30)}, {From: at(35), To: at(180)}}},
	} {
		p.now = at(look.now)
		p.job.Attempts = []driver.Attempt{{Number: 1, Started: at(1)}, {Number: 2, Started: at(10), Suspended: look.stood}, {Number: 3, Started: at(10), Suspended: time.Hour}}
		before := p.rec.Runs[1].Still
		held := append([]tuning.Span(nil), before...)
		p.suspensions()
		if diff := cmp.Diff(look.want, p.rec.Runs[1].Still); diff != "" {
			t.Errorf("%s (-want +got):\n%s", look.name, diff)
		}
		if diff := cmp.Diff(held, append([]tuning.Span(nil), before...)); diff != "" {
			t.Errorf("%s: what others may hold has changed:\n%s", look.name, diff)
		}
		if look.epoch > 0 {
			p.rec.Epochs = append(p.rec.Epochs, tuning.Epoch{Attempt: 2, End: at(look.epoch)})
		}
	}
	if p.rec.Runs[0].Still != nil || len(p.rec.Runs) != 2 {
		t.Errorf("the attempt before has %v of %d runs, want nothing of two", p.rec.Runs[0].Still, len(p.rec.Runs))
	}
}
