package searcher_test

import (
	"testing"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

func TestWhatASearchStillTrains(t *testing.T) {
	t.Parallel()
	at := func(epoch, passed int, state searcher.State) searcher.Trial {
		return searcher.Trial{State: state, Passed: passed, Reports: []searcher.Report{{Epoch: epoch}}}
	}
	for _, tt := range []struct {
		name   string
		method tuning.SearchMethod
		snap   searcher.Snapshot
		epochs float64 // of 3 trials of 9 epochs, with rungs 3 and 9
		path   float64
	}{
		{"all of it, of which every third trial goes on", tuning.ASHA, searcher.Snapshot{}, 3 * (3 + 6.0/3), 9},
		{"without rungs every trial is whole", tuning.Random, searcher.Snapshot{}, 27, 9},
		{"what a running trial has done is done", tuning.ASHA, searcher.Snapshot{Trials: []searcher.Trial{at(2, 0, searcher.Running)}}, 1 + 2 + 2*5, 7},
		{"one that passed its rung trains to the end", tuning.ASHA, searcher.Snapshot{Trials: []searcher.Trial{at(5, 1, searcher.Running)}}, 4 + 2*5, 4},
		{"trials that ended train no more", tuning.ASHA, searcher.Snapshot{Trials: []searcher.Trial{at(9, 1, searcher.Done), at(3, 0, searcher.Stopped)}}, 5, 0},
		{"the best of the last goes on to the end", tuning.ASHA, searcher.Snapshot{Trials: []searcher.Trial{at(3, 0, searcher.Stopped), at(3, 0, searcher.Stopped), at(2, 0, searcher.Running)}}, 6, 6},
		{"nothing after the end of a budget", tuning.ASHA, searcher.Snapshot{Head: searcher.Head{Closing: "the budget is used up"}}, 0, 0},
		{"nothing of a search that is over", tuning.ASHA, searcher.Snapshot{Head: searcher.Head{Over: true}}, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for i := range tt.snap.Trials {
				tt.snap.Trials[i].Number = i + 1
			}
			s := searcher.New(searcher.Plan{Search: tuning.Search{Method: tt.method, Trials: 3, Parallel: 1, Epochs: 9, MinEpochs: 2, Eta: 3}}, tt.snap)
			if epochs, path := s.Left(func(int) bool { return false }); epochs != tt.epochs || path != tt.path {
				t.Errorf("%g epochs, %g one after the other; want %g and %g", epochs, path, tt.epochs, tt.path)
			}
		})
	}
}
