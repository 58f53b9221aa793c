package searcher_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

// playAlone plays a search whose trials only depend on their hyperparameters. A job whose end was decided on does
// late more epochs before it ends, and its checkpoint has them.
func playAlone(t *rapid.T, plan searcher.Plan, late func() int) *searcher.Searcher {
	s := searcher.New(plan, searcher.Snapshot{})
	saved := map[int]int{} // epochs, by trial
	actions, err := s.Handle(searcher.Event{Kind: searcher.Opened})
	for !s.Over {
		if err != nil || len(actions) != 1 {
			t.Fatalf("%v, %v: want one job", err, actions)
		}
		n := actions[0].Trial
		left, end := math.MaxInt, searcher.Succeeded
		for epoch := saved[n] + 1; epoch <= plan.Epochs && left > 0; epoch++ {
			x := s.Trials[n-1].Settings["x"].Float()
			actions, err = s.Handle(searcher.Event{Kind: searcher.Reported, Trial: n, Report: searcher.Report{
				Epoch: epoch, Value: math.Sin(9*x + 3*math.Sqrt(float64(epoch))), Seconds: float64(epoch),
			}})
			if err != nil {
				t.Fatal(err)
			}
			if left--; len(actions) > 0 {
				left = late()
			}
			saved[n] = epoch
		}
		if saved[n] < plan.Epochs {
			end = searcher.Cancelled
		}
		actions, err = s.Handle(searcher.Event{Kind: searcher.Ended, Trial: n, End: end})
		for len(actions) > 0 && actions[0].Kind == searcher.Finish {
			actions = actions[1:]
		}
	}
	return s
}

// TestEpochsAfterTheDecisionChangeNothing: a job ends some epochs after that is decided on, more where its controller
// was away. The search goes on as if it had ended at once.
func TestEpochsAfterTheDecisionChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := draw(t)
		plan.Parallel = 1
		want := playAlone(t, plan, func() int { return 0 })
		got := playAlone(t, plan, func() int { return rapid.IntRange(0, 16).Draw(t, "late") })
		if len(want.Trials) != len(got.Trials) {
			t.Fatalf("%d trials, want %d", len(got.Trials), len(want.Trials))
		}
		for i := range want.Trials {
			a, b := &want.Trials[i], &got.Trials[i]
			if a.State != b.State || !a.Settings.Equal(b.Settings) || a.Passed != b.Passed || a.Counted != b.Counted {
				t.Errorf("trial %d: %s, %d rungs, %d epochs count; want %s, %d, %d", a.Number, b.State, b.Passed, b.Counted, a.State, a.Passed, a.Counted)
			}
			for k := range a.Counted {
				if a.Reports[k].Value != b.Reports[k].Value {
					t.Errorf("trial %d, epoch %d: %g, want %g", a.Number, k+1, b.Reports[k].Value, a.Reports[k].Value)
				}
			}
		}
	})
}

func TestEpochsAfterAWholeTrialMakeItNoBetter(t *testing.T) {
	t.Parallel()
	p := searcher.Plan{Search: tuning.Search{Method: tuning.Random, Trials: 2, Parallel: 2, Epochs: 2, Eta: 3}, Total: 9, Target: new(0.9)}
	p.Settings = []tuning.Settings{{"x": tuning.Number(1)}, {"x": tuning.Number(2)}}
	s := searcher.New(p, searcher.Snapshot{})
	story(t, s, "open", "1@1=0.5", "1@2=0.7", "2@1=0.5", "2@2=0.6", "2@3=0.95") // its job ends late
	for i, want := range []struct{ trial, epoch int }{{1, 2}, {2, 2}} {
		tr := s.Ranking()[i]
		if best := s.Best(tr); tr.Number != want.trial || best.Epoch != want.epoch {
			t.Errorf("rank %d is trial %d by its epoch %d, want %+v", i+1, tr.Number, best.Epoch, want)
		}
	}
}
