package fault_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pitchpipe/test/fault"
)

func TestAPlanHasEveryKindBeforeAnyComesAgain(t *testing.T) {
	t.Parallel()
	fs := []fault.Family{
		{Kind: "a", Weight: 9, Points: []string{"1", "2", "3", "4", "5"}}, {Kind: "b", Weight: 1}, {Kind: "c", Weight: 2, Actions: []string{"x", "y"}},
	}
	for _, seed := range []uint64{1, 2, 3} {
		got := fault.Plan(rand.New(rand.NewPCG(seed, 0)), fs, 2, 60)
		if again := fault.Plan(rand.New(rand.NewPCG(seed, 0)), fs, 2, 60); !slices.Equal(got, again) {
			t.Errorf("seed %d gives another plan each time", seed)
		}
		first, seen := map[string]bool{}, map[string]bool{}
		for i, f := range got {
			if i < len(fs) && first[f.Kind] {
				t.Errorf("seed %d: %s comes twice among the first", seed, f.Kind)
			}
			first[f.Kind] = true
			seen[f.Kind+f.Point+f.Action] = true
		}
		for _, want := range []string{"a1", "a2", "a3", "a4", "a5", "b", "cx", "cy"} {
			if !seen[want] {
				t.Errorf("seed %d: no %s in 60", seed, want)
			}
		}
	}
}
