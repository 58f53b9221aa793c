package main

import (
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// teams of 0 (which means 1) to 6 threads.
func teams() (ts []*team) {
	for threads := range 7 {
		ts = append(ts, newTeam(threads))
	}
	return ts
}

func TestEachCallsEveryPieceOnce(t *testing.T) {
	t.Parallel()
	teams := teams()
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.IntRange(0, len(teams)-1).Draw(t, "threads")
		pieces := rapid.IntRange(0, 100).Draw(t, "pieces")
		calls := make([]atomic.Int32, pieces)
		teams[threads].each(pieces, func(i int) { calls[i].Add(1) })
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Fatalf("%d threads, %d pieces: piece %d was done %d times", threads, pieces, i, got)
			}
		}
	})
}

func TestSumIsTheSameOnAnyNumberOfThreads(t *testing.T) {
	t.Parallel()
	teams := teams()
	rapid.Check(t, func(t *rapid.T) {
		terms := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 200).Draw(t, "terms")
		want := 0.0
		for _, v := range terms {
			want += v
		}
		for threads := range teams {
			if got := teams[threads].sum(len(terms), func(i int) float64 { return terms[i] }); got != want {
				t.Fatalf("%d threads: sum %v, want %v", threads, got, want)
			}
		}
	})
}

func TestSpansCoverEveryItemOnceInOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1000).Draw(t, "n")
		pieces := rapid.IntRange(1, 70).Draw(t, "pieces")
		at := 0
		for i := range pieces {
			lo, hi := span(n, pieces, i)
			if lo != at || hi < lo || hi-lo > n/pieces+1 {
				t.Fatalf("%d items in %d pieces: piece %d is %d..%d, want it to start at %d", n, pieces, i, lo, hi, at)
			}
			at = hi
		}
		if at != n {
			t.Fatalf("%d items in %d pieces: covered %d", n, pieces, at)
		}
	})
}
