package bfs

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

const (
	vertices  = 240_000
	searches  = 24 // per epoch
	minDegree = 4
	maxDegree = 12

	genPieces     = 64
	frontierPiece = 4096 // vertices of a frontier that are one piece of work
	ranges        = 16   // that the vertices are cut into
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "bfs",
		Summary: "breadth-first searches of a random graph, allocating at every level",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p), nil },
	}
}

// graph holds the edges of vertex v at edge[start[v]:start[v+1]].
type graph struct {
	start []int32
	edge  []int32
}

func (g graph) len() int { return len(g.start) - 1 }

// Searcher searches one graph.
type Searcher struct {
	params epochs.Params
	graph  graph
	digest uint64 // of everything found so far; the next searches start from it
}

// New makes the graph.
func New(p epochs.Params) *Searcher {
	return &Searcher{params: p, graph: random(p, p.Size(vertices, 500))}
}

// random draws a directed graph. Half of the edges go anywhere, the others
// favour low vertices, so that some vertices are hubs.
func random(p epochs.Params, n int) graph {
	g := graph{start: make([]int32, n+1)}
	rng := rand.New(rand.NewPCG(p.Stream(0)))
	for v := range n {
		g.start[v+1] = g.start[v] + int32(minDegree+rng.IntN(maxDegree-minDegree+1))
	}
	g.edge = make([]int32, g.start[n])
	p.Team.Each(genPieces, func(piece int) {
		rng := rand.New(rand.NewPCG(p.Stream(uint64(piece) + 1)))
		lo, hi := team.Span(len(g.edge), genPieces, piece)
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

// Epoch does so many searches, each from a vertex that depends on what was found
// before.
func (s *Searcher) Epoch(_ context.Context, n int) (epochs.Result, error) {
	var reached, total int64
	for i := range searches {
		s.digest = epochs.Mix(s.digest, uint64(n)<<16|uint64(i))
		from := int32(s.digest % uint64(s.graph.len()))
		hit, sum := search(s.params.Team, s.graph, from)
		reached += hit
		total += sum
		s.digest = epochs.Mix(s.digest, uint64(hit)<<32^uint64(sum))
	}
	return epochs.Result{
		Loss: float64(total) / float64(reached),
		Acc:  float64(reached) / float64(searches*s.graph.len()),
	}, nil
}

// search returns how many vertices can be reached from one, itself included, and
// the sum of their distances.
func search(t *team.Team, g graph, from int32) (reached, total int64) {
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

// expand marks the unseen neighbours of the frontier and returns them. First each
// piece of the frontier sorts its unseen neighbours by the range of vertices that
// they lie in, then each range marks its own: no thread writes what another reads,
// and the order of the new frontier is the same on any number of threads.
func expand(t *team.Team, g graph, seen, frontier []int32, depth int32) []int32 {
	width := (g.len() + ranges - 1) / ranges
	pieces := (len(frontier) + frontierPiece - 1) / frontierPiece
	sent := make([][ranges][]int32, pieces)
	t.Each(pieces, func(piece int) {
		lo, hi := team.Span(len(frontier), pieces, piece)
		var to [ranges][]int32
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
	var found [ranges][]int32
	t.Each(ranges, func(r int) {
		var mine []int32
		for piece := range sent {
			for _, u := range sent[piece][r] {
				if seen[u] == 0 {
					seen[u] = depth + 1
					mine = append(mine, u)
				}
			}
		}
		found[r] = mine
	})
	return slices.Concat(found[:]...)
}

// Save writes the digest.
func (s *Searcher) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, s.digest) }

// Load reads what Save wrote.
func (s *Searcher) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, &s.digest); err != nil {
		return fmt.Errorf("read digest: %w", err)
	}
	return nil
}
