package ledger

import (
	"testing"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func TestMoneyMovesAndNoneIsLost(t *testing.T) {
	t.Parallel()
	l := New(epochs.Params{Input: 1, Seed: 1, Scale: 0.01, Team: team.New(3)})
	last := 0.0
	for n := range 3 {
		r, err := l.Epoch(t.Context(), n+1)
		if err != nil || r.Acc != 1 || r.Loss <= last {
			t.Errorf("epoch %d: %+v after a spread of %v, %v", n+1, r, last, err)
		}
		last = r.Loss
	}
}

func TestMoneyThatWasLostIsFound(t *testing.T) {
	t.Parallel()
	l := New(epochs.Params{Input: 1, Seed: 1, Scale: 0.01, Team: team.New(1)})
	l.balance[3]--
	if r, err := l.Epoch(t.Context(), 1); err != nil || r.Acc != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
