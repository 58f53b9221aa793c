package bfs

import (
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

// queued is the textbook search with one queue.
func queued(g graph, from int32) (reached, total int64) {
	depth := map[int32]int64{from: 0}
	queue := []int32{from}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		reached++
		total += depth[v]
		for _, u := range g.edge[g.start[v]:g.start[v+1]] {
			if _, ok := depth[u]; !ok {
				depth[u] = depth[v] + 1
				queue = append(queue, u)
			}
		}
	}
	return reached, total
}

func TestASearchFindsWhatTheTextbookOneFinds(t *testing.T) {
	t.Parallel()
	teams := []*team.Team{team.New(1), team.New(3)}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "vertices")
		g := graph{start: []int32{0}}
		for range n {
			out := rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 0, 3).Draw(t, "edges")
			g.edge = append(g.edge, out...)
			g.start = append(g.start, int32(len(g.edge)))
		}
		from := rapid.Int32Range(0, int32(n-1)).Draw(t, "from")
		wantReached, wantTotal := queued(g, from)
		for _, tm := range teams {
			if reached, total := search(tm, g, from); reached != wantReached || total != wantTotal {
				t.Fatalf("%d threads: reached %d at distance %d in all, want %d and %d", tm.Threads(), reached, total, wantReached, wantTotal)
			}
		}
	})
}

func TestALargeGraphIsSearchedTheSameWay(t *testing.T) {
	t.Parallel()
	tm := team.New(2)
	g := random(epochs.Params{Input: 1, Seed: 3, Scale: 1, Team: tm}, 40_000) // several pieces a frontier
	reached, total := search(tm, g, 7)
	if wantReached, wantTotal := queued(g, 7); reached != wantReached || total != wantTotal {
		t.Errorf("reached %d at %d, want %d at %d", reached, total, wantReached, wantTotal)
	}
	if reached < 36_000 {
		t.Errorf("reached %d of 40000 vertices, want a connected graph", reached)
	}
}
