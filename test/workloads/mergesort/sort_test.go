package mergesort_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/test/workloads/mergesort"
	"pitchpipe/test/workloads/team"
)

func TestKeysComeBackInOrder(t *testing.T) {
	t.Parallel()
	teams := []*team.Team{team.New(1), team.New(3)}
	rapid.Check(t, func(t *rapid.T) {
		// Few different keys make many equal ones, which is where a merge goes wrong.
		top := rapid.SampledFrom([]uint64{1, 3, 100, 1 << 63}).Draw(t, "top")
		keys := rapid.SliceOfN(rapid.Uint64Max(top), 0, 300).Draw(t, "keys")
		want := slices.Sorted(slices.Values(keys))
		for _, tm := range teams {
			if got := mergesort.Sort(tm, slices.Clone(keys)); !slices.Equal(got, want) {
				t.Fatalf("%d threads: %v became %v", tm.Threads(), keys, got)
			}
		}
	})
}
