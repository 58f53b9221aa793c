package trials_test

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
)

// Half of the epochs of one trial after the other have run, at 10 s each.
func TestTheExpectedEndOfASearch(t *testing.T) {
	t.Parallel()
	began := time.Unix(0, 0)
	now := began.Add(100 * time.Second)
	for _, tt := range []struct {
		name   string
		change func(*trials.State)
		want   time.Duration // 0: unknown, or nothing is left
	}{
		{"it goes on at the pace of its epochs", func(*trials.State) {}, 100 * time.Second},
		{"a budget of time comes first", func(x *trials.State) { x.Plan.Time = 130 * time.Second }, 30 * time.Second},
		{"a budget of energy comes first", func(x *trials.State) { x.Plan.Energy = 1500 }, 50 * time.Second},
		{"a budget of energy that modelled joules do not enforce", func(x *trials.State) {
			x.Plan.Energy = 1500
			for i := range x.Trials[0].Reports {
				x.Trials[0].Reports[i].Source = tuning.Modelled
			}
		}, 100 * time.Second},
		{"a budget that is large changes nothing", func(x *trials.State) { x.Plan.Energy = 15000 }, 100 * time.Second},
		{"before two epochs it is unknown", func(x *trials.State) { x.Trials[0].Reports = x.Trials[0].Reports[:1] }, 0},
		{"nothing is left", func(x *trials.State) { x.Over = true }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := trials.State{Search: trials.Search{Created: began}}
			x.Plan.Search = tuning.Search{Method: tuning.Random, Trials: 2, Parallel: 1, Epochs: 10}
			one := trials.Trial{Trial: searcher.Trial{Number: 1, State: searcher.Done}}
			for e := 1.0; e <= 10; e++ {
				one.Reports = append(one.Reports, searcher.Report{Epoch: int(e), At: 10 * e, Seconds: 10 * e, Joules: new(100 * e)})
			}
			x.Trials = []trials.Trial{one}
			tt.change(&x)
			if got, ok := x.Left(now); got != tt.want || ok != (tt.want > 0) {
				t.Errorf("%s (%t), want %s", got, ok, tt.want)
			}
		})
	}
}

func TestAJobIsKnownByItsTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := trials.New(trials.Config{Jobs: newCluster(9), Store: newMemory(), Log: slog.New(slog.DiscardHandler)})
		begin(t, s, policy())
		x := run(t, s)
		of, jobs := s.Lineages(), 0
		for _, tr := range x.Trials {
			for _, job := range tr.Jobs {
				jobs++
				if of[job] != (trials.Lineage{Search: x.ID, Trial: tr.Number}) {
					t.Errorf("%s is %+v, want trial %d", job, of[job], tr.Number)
				}
			}
		}
		if !x.Settled() || len(of) != jobs || jobs < 9 {
			t.Errorf("settled %t; %d of %d jobs", x.Settled(), len(of), jobs)
		}
	})
}
