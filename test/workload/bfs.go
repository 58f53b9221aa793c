package main

import (
	"context"
	"math/rand/v2"
	"slices"
)

const (
	bfsVertices   = 240_000
	bfsSearches   = 24   // per epoch
	bfsDegree     = 4    // the least; the greatest is three times that
	frontierPiece = 4096 // vertices of a frontier that are one piece of work
	bfsRanges     = 16   // that the vertices are cut into
)

// bfs searches one graph, each time from a vertex that depends on what it found before.
// Every level allocates, which keeps the collector busy.
type bfs struct {
	digest

	params params
	graph  graph
}

// graph holds the edges of vertex v at edge[start[v]:start[v+1]].
type graph struct {
	start []int32
	edge  []int32
}

func (g graph) len() int { return len(g.start) - 1 }

func newBFS(p params) (work, error) {
	return &bfs{params: p, graph: newGraph(p, p.size(bfsVertices, 500))}, nil
}

// newGraph draws a directed graph. Half of the edges go anywhere, the others favour low
// vertices, so that some vertices are hubs.
func newGraph(p params, n int) graph {
	g := graph{start: make([]int32, n+1)}
	rng := rand.New(rand.NewPCG(p.stream(0)))
	for v := range n {
		g.start[v+1] = g.start[v] + int32(bfsDegree+rng.IntN(2*bfsDegree+1))
	}
	g.edge = make([]int32, g.start[n])
	p.team.each(pieces, func(piece int) {
		rng := rand.New(rand.NewPCG(p.stream(uint64(piece) + 1)))
		lo, hi := span(len(g.edge), pieces, piece)
		for e := lo; e < hi; e++ {
			if e%2 == 0 {
				g.edge[e] = rng.Int32N(int32(n))
			} else {
				u := rng.Float64()
				g.edge[e] = int32(u * u * u * float64(n))
			}
		}
	})
	return g
}

func (s *bfs) epoch(_ context.Context, n int) (result, error) {
	var reached, total int64
	for i := range bfsSearches {
		s.mix(uint64(n)<<16 | uint64(i))
		hit, sum := search(s.params.team, s.graph, int32(uint64(s.digest)%uint64(s.graph.len())))
		reached += hit
		total += sum
		s.mix(uint64(hit)<<32 ^ uint64(sum))
	}
	return result{loss: float64(total) / float64(reached), acc: float64(reached) / float64(bfsSearches*s.graph.len())}, nil
}

// search returns how many vertices can be reached from one, itself included, and the sum of
// their distances.
func search(t *team, g graph, from int32) (reached, total int64) {
	seen := make([]int32, g.len()) // distance plus one
	seen[from] = 1
	frontier := []int32{from}
	for depth := int32(1); len(frontier) > 0; depth++ {
		reached += int64(len(frontier))
		total += int64(len(frontier)) * int64(depth-1)
		frontier = expand(t, g, seen, frontier, depth)
	}
	return reached, total
}

// expand marks the unseen neighbours of the frontier and returns them. First each piece of
// the frontier sorts its unseen neighbours by the range of vertices that they lie in, then
// each range marks its own: no thread writes what another reads, and the order of the new
// frontier is the same on any number of threads.
func expand(t *team, g graph, seen, frontier []int32, depth int32) []int32 {
	width := (g.len() + bfsRanges - 1) / bfsRanges
	n := (len(frontier) + frontierPiece - 1) / frontierPiece
	sent := make([][bfsRanges][]int32, n)
	t.each(n, func(piece int) {
		lo, hi := span(len(frontier), n, piece)
		var to [bfsRanges][]int32
		for _, v := range frontier[lo:hi] {
			for _, u := range g.edge[g.start[v]:g.start[v+1]] {
				if seen[u] == 0 {
					r := int(u) / width
					to[r] = append(to[r], u)
				}
			}
		}
		sent[piece] = to
	})
	var found [bfsRanges][]int32
	t.each(bfsRanges, func(r int) {
		for piece := range sent {
			for _, u := range sent[piece][r] {
				if seen[u] == 0 {
					seen[u] = depth + 1
					found[r] = append(found[r], u)
				}
			}
		}
	})
	return slices.Concat(found[:]...)
}
