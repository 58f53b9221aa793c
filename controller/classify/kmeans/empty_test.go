package kmeans

import (
	"slices"
	"testing"
)

func TestAnEmptyClusterTakesTheFarthestPoint(t *testing.T) {
	t.Parallel()
	points := [][]float64{{0}, {1}, {2}, {50}}
	// The last two starting points attract nothing: every point is nearer to another.
	start := [][]float64{{1}, {1000}, {-1000}}
	r := Cluster(points, start, 100)
	sizes := make([]int, 3)
	for _, c := range r.Labels {
		sizes[c]++
	}
	if slices.Contains(sizes, 0) {
		t.Fatalf("an empty cluster stayed: %v", r.Labels)
	}
	if slices.Index(r.Labels, r.Labels[3]) != 3 {
		t.Errorf("the far point shares a cluster: %v", r.Labels)
	}
	if want := 0.5; r.Inertia != want {
		t.Errorf("inertia %v, want %v", r.Inertia, want)
	}
}
