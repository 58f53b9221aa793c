package reconcile

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// Once an attempt is over the scheduler may not tell where it ran, and its last
// epochs still have to be asked for, there.
func TestEachAttemptIsMeasuredWhereItRan(t *testing.T) {
	t.Parallel()
	type ask struct {
		attempt int
		node    string
	}
	var asked []ask
	l := New(Config{Log: slog.New(slog.DiscardHandler), Services: Services{
		Measure: func(_ context.Context, q MeasureRequest) (Measurement, error) {
			asked = append(asked, ask{q.Attempt, q.Node})
			return Measurement{Reason: tuning.ReasonProfiling}, nil
		},
	}})
	rec := &Record{Identity: Identity{Job: "7"}, Request: Request{Policy: tuning.Policy{Progress: tuning.Progress{Pattern: "^epoch"}}}}
	begun := time.Now()
	attempts := []driver.Attempt{{Number: 1, Started: begun}, {Number: 2, Started: begun, Cause: driver.CauseIntent}}
	for _, tc := range []struct {
		name string
		job  driver.Job
		want []ask
	}{
		{"it waits for its first start", driver.Job{State: driver.Pending}, nil},
		{"it begins, and the scheduler does not say where", driver.Job{State: driver.Running, Attempt: 1}, []ask{{1, ""}}},
		{"it runs", driver.Job{State: driver.Running, Attempt: 1, Node: "n1"}, []ask{{1, "n1"}}},
		{"it waits for its second start", driver.Job{State: driver.Pending, Attempt: 1}, []ask{{1, "n1"}}},
		{"it runs elsewhere", driver.Job{State: driver.Running, Attempt: 2, Node: "n2"}, []ask{{1, "n1"}, {2, "n2"}}},
		{"it ended", driver.Job{State: driver.Succeeded, Attempt: 2}, []ask{{1, "n1"}, {2, "n2"}}},
	} {
		asked = nil
		tc.job.ID, tc.job.Attempts = "7", attempts[:tc.job.Attempt]
		p := &reconciliation{Loop: l, now: begun, job: tc.job, rec: rec}
		if err := p.adopt(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.place()
		p.measure(t.Context())
		if diff := cmp.Diff(tc.want, asked, cmp.AllowUnexported(ask{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
