package churn

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func TestATreeIsAsTallAsItsLongestPath(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed, n := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 200).Draw(t, "keys")
		got := grow(rand.NewPCG(seed, 1), n)
		keys := make([]uint64, n)
		rng := rand.NewPCG(seed, 1)
		for i := range keys {
			keys[i] = rng.Uint64()
		}
		want := uint64(0)
		for _, k := range slices.Sorted(slices.Values(keys)) {
			want = want*31 + k
		}
		if !got.ok || got.sum != want || got.depth != height(keys) {
			t.Fatalf("%+v, want the sum %d and a depth of %d", got, want, height(keys))
		}
	})
}

// height is that of the tree which grows from the keys: the first parts the others.
func height(keys []uint64) int {
	if len(keys) == 0 {
		return 0
	}
	var low, high []uint64
	for _, k := range keys[1:] {
		if k < keys[0] {
			low = append(low, k)
		} else {
			high = append(high, k)
		}
	}
	return 1 + max(height(low), height(high))
}

func TestAnEpochGrowsSoundTrees(t *testing.T) {
	t.Parallel()
	g := New(epochs.Params{Input: 1, Seed: 1, Scale: 0.05, Team: team.New(2)})
	r, err := g.Epoch(t.Context(), 1)
	if err != nil || r.Acc != 1 || r.Loss < 0.5 || r.Loss > 3 {
		t.Errorf("%+v, %v", r, err)
	}
}
