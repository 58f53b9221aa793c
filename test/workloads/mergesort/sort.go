package mergesort

import (
	"slices"
	"sort"

	"pitchpipe/test/workloads/team"
)

// runs is the number of pieces that are sorted alone before they are merged; a
// power of two.
const runs = 16

// Sort returns the keys in ascending order. It uses keys as scratch space.
//
// Runs are sorted alone and then merged two by two. Each merge is cut into pieces
// of the output that can be merged alone (merge path: Odeh, Green, Mwassi,
// Shmueli and Birk, 2012), so that the last merges are as parallel as the first.
func Sort(t *team.Team, keys []uint64) []uint64 {
	n := len(keys)
	t.Each(runs, func(i int) {
		lo, hi := team.Span(n, runs, i)
		slices.Sort(keys[lo:hi])
	})
	from, to := keys, make([]uint64, n)
	for width := 1; width < runs; width *= 2 {
		pieces := 2 * width // of each merge
		t.Each(runs, func(i int) {
			pair, piece := i/pieces, i%pieces
			lo, _ := team.Span(n, runs, 2*width*pair)
			mid, _ := team.Span(n, runs, 2*width*pair+width)
			_, hi := team.Span(n, runs, 2*width*pair+2*width-1)
			mergePiece(to[lo:hi], from[lo:mid], from[mid:hi], pieces, piece)
		})
		from, to = to, from
	}
	return from
}

// mergePiece writes one piece of the merge of a and b to its place in out.
func mergePiece(out, a, b []uint64, pieces, piece int) {
	lo, hi := team.Span(len(out), pieces, piece)
	i, end := split(a, b, lo), split(a, b, hi)
	merge(out[lo:hi], a[i:end], b[lo-i:hi-end])
}

// split tells how many of the first k keys of the merge come from a.
func split(a, b []uint64, k int) int {
	lo, hi := max(0, k-len(b)), min(k, len(a))
	return lo + sort.Search(hi-lo, func(d int) bool {
		i := lo + d
		return a[i] > b[k-i-1]
	})
}

func merge(out, a, b []uint64) {
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
