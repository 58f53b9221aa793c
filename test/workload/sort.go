package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"sort"
)

const (
	sortKeys  = 1_300_000
	sortTimes = 5  // per epoch
	sortRuns  = 16 // pieces that are sorted alone before they are merged; a power of two
)

// sorter sorts one array of keys after the other, allocating for each. The digest of all
// keys so far seeds the next ones.
type sorter struct {
	digest

	params params
}

func newSort(p params) (work, error) { return &sorter{params: p}, nil }

func (s *sorter) epoch(_ context.Context, n int) (result, error) {
	wrong, pairs := 0, 0
	for i := range sortTimes {
		s.mix(uint64(n)<<16 | uint64(i))
		sorted := parallelSort(s.params.team, s.draw(s.params.size(sortKeys, 1000)))
		wrong += int(s.params.team.sum(pieces, func(piece int) float64 {
			lo, hi := span(len(sorted)-1, pieces, piece)
			bad := 0
			for k := lo; k < hi; k++ {
				if sorted[k] > sorted[k+1] {
					bad++
				}
			}
			return float64(bad)
		}))
		pairs += len(sorted) - 1
		s.mix(sorted[len(sorted)/2] ^ sorted[0])
	}
	return right(wrong, pairs), nil
}

func (s *sorter) draw(n int) []uint64 {
	out := make([]uint64, n)
	seed, _ := s.params.stream(0)
	s.params.team.each(pieces, func(piece int) {
		rng := rand.NewPCG(mix(seed, uint64(s.digest)), uint64(piece))
		lo, hi := span(n, pieces, piece)
		for i := lo; i < hi; i++ {
			out[i] = rng.Uint64()
		}
	})
	return out
}

// parallelSort returns the keys in ascending order. It uses keys as scratch space.
//
// It sorts runs alone and then merges them two by two. Each merge is cut into pieces of the
// output that can be merged alone (merge path: Odeh, Green, Mwassi, Shmueli and Birk,
// 2012), so that the last merges are as parallel as the first.
func parallelSort(t *team, keys []uint64) []uint64 {
	n := len(keys)
	t.each(sortRuns, func(i int) {
		lo, hi := span(n, sortRuns, i)
		slices.Sort(keys[lo:hi])
	})
	from, to := keys, make([]uint64, n)
	for width := 1; width < sortRuns; width *= 2 {
		parts := 2 * width // of each merge
		t.each(sortRuns, func(i int) {
			pair, part := i/parts, i%parts
			lo, _ := span(n, sortRuns, 2*width*pair)
			mid, _ := span(n, sortRuns, 2*width*pair+width)
			_, hi := span(n, sortRuns, 2*width*pair+2*width-1)
			mergePart(to[lo:hi], from[lo:mid], from[mid:hi], parts, part)
		})
		from, to = to, from
	}
	return from
}

// mergePart writes one part of the merge of a and b to its place in out.
func mergePart(out, a, b []uint64, parts, part int) {
	lo, hi := span(len(out), parts, part)
	i, end := split(a, b, lo), split(a, b, hi)
	out, a, b = out[lo:hi], a[i:end], b[lo-i:hi-end]
	i, j := 0, 0
	for k := range out {
		if j == len(b) || i < len(a) && a[i] <= b[j] {
			out[k] = a[i]
			i++
		} else {
			out[k] = b[j]
			j++
		}
	}
}

// split is how many of the first k keys of the merge come from a.
func split(a, b []uint64, k int) int {
	lo, hi := max(0, k-len(b)), min(k, len(a))
	return lo + sort.Search(hi-lo, func(d int) bool {
		i := lo + d
		return a[i] > b[k-i-1]
	})
}
