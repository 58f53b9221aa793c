package kmeans

import "slices"

// Result is a partition.
type Result struct {
	Centroids [][]float64 // means of the clusters
	Labels    []int       // of each point, an index into Centroids; no cluster is empty
	Near      []float64   // squared distance of each point to its centroid
	Inertia   float64     // their sum
}

// Cluster moves the centroids from start by Lloyd's iterations (1982), at most so many. A
// cluster that runs empty takes over the point farthest from its centroid. Ties fall to the
// lower index. There are at least as many points as centroids, and one of each; all have
// as many coordinates, small enough that sums of their squares are finite.
func Cluster(points, start [][]float64, iterations int) Result {
	return lloyd(packed(points), packed(start), iterations)
}

// Distances returns the squared distance of each point to each other.
func Distances(points [][]float64) [][]float64 {
	points = packed(points)
	out := make([][]float64, len(points))
	for i := range out {
		out[i] = make([]float64, len(points))
		for j := range i {
			d := squared(points[i], points[j])
			out[i][j], out[j][i] = d, d
		}
	}
	return out
}

// Next returns the point that leaves the least inertia when it becomes a further
// centroid and no other moves; -1: none leaves less. It is the step of the fast global
// k-means (Likas, Vlassis and Verbeek, 2003). distances are those of the points.
func Next(distances [][]float64, r Result) int {
	best, at := 0.0, -1
	for i, row := range distances {
		gain := 0.0
		for j, d := range row {
			gain += max(r.Near[j]-d, 0)
		}
		if gain > best {
			best, at = gain, i
		}
	}
	return at
}

// packed copies the points, one behind the other in memory.
func packed(points [][]float64) [][]float64 {
	if len(points) == 0 {
		return nil
	}
	flat := slices.Concat(points...)
	out, dim := make([][]float64, len(points)), len(points[0])
	for i := range out {
		out[i] = flat[i*dim : (i+1)*dim : (i+1)*dim]
	}
	return out
}
