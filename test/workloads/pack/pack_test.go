package pack

import (
	"math"
	"testing"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func packer(t *testing.T) *Packer {
	t.Helper()
	k, err := New(epochs.Params{Input: 1, Seed: 1, Scale: 0.01, Team: team.New(1)})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestATextBecomesSmallerAndComesBack(t *testing.T) {
	t.Parallel()
	k := packer(t)
	for n := range 2 {
		r, err := k.Epoch(t.Context(), n+1)
		if err != nil || r.Acc != 1 || r.Loss <= 0 || r.Loss > 0.6 {
			t.Errorf("epoch %d: %+v, %v", n+1, r, err)
		}
	}
}

func TestABlockThatCameBackOtherwiseIsFound(t *testing.T) {
	t.Parallel()
	k := packer(t)
	k.sums[1]++
	r, err := k.Epoch(t.Context(), 1)
	if want := float64(k.blocks()-1) / float64(k.blocks()); err != nil || math.Abs(r.Acc-want) > 1e-12 {
		t.Errorf("%+v, %v; want the share %v", r, err, want)
	}
}
