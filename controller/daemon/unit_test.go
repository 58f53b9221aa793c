package daemon

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// unit is an exporter that knows one task of Nomad in its first attempt, which has gone
// on over a restart in place.
type unit struct {
	nodes.Meter // of what it is not asked here

	started time.Time
}

func (unit) Node(context.Context) (api.Node, error) { return api.Node{Cores: 2, MachineKind: "m"}, nil }

func (u unit) Window(_ context.Context, job string, attempt int, after uint64) (api.Window, error) {
	w := api.Window{Job: api.Job{Manager: "nomad", ID: job, Attempt: attempt, Started: u.started}}
	for i := range 60 {
		s := api.Sample{Seq: uint64(i + 1), Time: u.started.Add(time.Duration(i) * time.Second), Values: map[string]float64{api.ColCPUSeconds: float64(i)}}
		if i > 0 && i%5 == 0 {
			s.Mark = &api.Report{Epoch: i / 5, Total: 20, Time: s.Time}
		}
		if s.Seq > after {
			w.Samples = append(w.Samples, s)
		}
	}
	return w, nil
}

// Epochs are those of the attempt that they ended in, whatever number the exporter gives
// it and however often it is asked.
func TestAttemptsOfOneUnitDoNotMixTheirEpochs(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	r := &services{driver: listing{}, nodes: nodes.One(unit{started: began}, nil), log: slog.New(slog.DiscardHandler)}
	policy := tuning.DefaultPolicy()
	turn := began.Add(28 * time.Second)
	for _, tt := range []struct {
		q           reconcile.MeasureRequest
		first, last int
	}{
		{reconcile.MeasureRequest{Job: "train", Attempt: 1, Unit: "a.main", To: turn}, 1, 5},
		// Its first mark is a beginning alone: the start of that epoch is unknown.
		{reconcile.MeasureRequest{Job: "train", Attempt: 2, Unit: "a.main", From: turn}, 7, 11},
		{reconcile.MeasureRequest{Job: "train", Attempt: 3, Unit: "b.main"}, 1, 11},
	} {
		tt.q.Policy = policy
		for range 2 {
			m, err := r.measure(t.Context(), tt.q)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(m.Epochs); n != tt.last-tt.first+1 || m.Epochs[0].Number != tt.first || m.Epochs[n-1].Number != tt.last {
				t.Fatalf("attempt %d: %+v, want epochs %d to %d", tt.q.Attempt, m.Epochs, tt.first, tt.last)
			}
			for _, e := range m.Epochs {
				if e.Attempt != tt.q.Attempt {
					t.Errorf("epoch %d is one of attempt %d, want %d", e.Number, e.Attempt, tt.q.Attempt)
				}
			}
		}
	}
}

func TestWhatAnEarlierJobUnderTheIDDidIsNotMeasured(t *testing.T) {
	t.Parallel()
	began := time.Unix(1000, 0)
	r := &services{driver: listing{}, nodes: nodes.One(unit{started: began}, nil), log: slog.New(slog.DiscardHandler)}
	q := reconcile.MeasureRequest{Job: "local-1", Attempt: 2, From: began.Add(time.Hour), Policy: tuning.DefaultPolicy()}
	if m, err := r.measure(t.Context(), q); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("%+v, %v", m, err)
	}
}
