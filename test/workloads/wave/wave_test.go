package wave

import (
	"math"
	"slices"
	"testing"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func TestAWaveKeepsItsEnergyAndItsEnds(t *testing.T) {
	t.Parallel()
	s := New(epochs.Params{Input: 1, Seed: 1, Scale: 0.0005, Team: team.New(2)})
	s.params.Scale = 0.2
	before := slices.Clone(s.now)
	for n := range 3 {
		r, err := s.Epoch(t.Context(), n+1)
		if err != nil || r.Loss > 1e-6 || s.now[0] != 0 || s.now[len(s.now)-1] != 0 {
			t.Fatalf("epoch %d: %+v, %v; ends %v and %v", n+1, r, err, s.now[0], s.now[len(s.now)-1])
		}
	}
	if slices.Equal(before, s.now) {
		t.Error("nothing moved")
	}
}

// One step of a string of five points, by hand.
func TestAPointIsPulledByItsNeighbours(t *testing.T) {
	t.Parallel()
	next := make([]float64, 3)
	advance(next, []float64{0, 0, 1, 0, 0}, []float64{0, 1, 0})
	if want := []float64{0.25, 0.5, 0.25}; !slices.EqualFunc(next, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-15 }) {
		t.Errorf("%v, want %v", next, want)
	}
}
