package kmeans

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

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
	points = packed(points)
	r := Result{Centroids: packed(start), Labels: slices.Repeat([]int{-1}, len(points)), Near: make([]float64, len(points))}
	for range iterations {
		if !r.assign(points) {
			break
		}
		r.fillEmpty()
		r.recentre(points)
	}
	return r
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

// packed copies the points, one after the other in memory.
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

// assign moves each point to its nearest centroid and reports whether any moved. A point
// stays where it is as near, or equal points would circle; else ties fall to the lower
// index.
func (r *Result) assign(points [][]float64) bool {
	some := false
	for i, p := range points {
		at, best := -1, math.Inf(1)
		if c := r.Labels[i]; c >= 0 {
			at, best = c, squared(p, r.Centroids[c])
		}
		for c, centroid := range r.Centroids {
			if v := squaredBelow(p, centroid, best); v < best {
				at, best = c, v
			}
		}
		some = some || at != r.Labels[i]
		r.Labels[i], r.Near[i] = at, best
	}
	return some
}

// fillEmpty gives each empty cluster the point that is farthest from its own
// centroid, out of a cluster that keeps another point.
func (r *Result) fillEmpty() {
	sizes := make([]int, len(r.Centroids))
	for _, c := range r.Labels {
		sizes[c]++
	}
	for c := range sizes {
		if sizes[c] > 0 {
			continue
		}
		at := -1 // k is at most the number of points, so some cluster has two
		for i, own := range r.Labels {
			if sizes[own] > 1 && (at < 0 || r.Near[i] > r.Near[at]) {
				at = i
			}
		}
		sizes[r.Labels[at]]--
		r.Labels[at], r.Near[at], sizes[c] = c, 0, 1
	}
}

// recentre moves each centroid to the mean of its points, and sums the inertia.
func (r *Result) recentre(points [][]float64) {
	sizes := make([]float64, len(r.Centroids))
	for _, centroid := range r.Centroids {
		clear(centroid)
	}
	for i, p := range points {
		floats.Add(r.Centroids[r.Labels[i]], p)
		sizes[r.Labels[i]]++
	}
	for c, n := range sizes {
		floats.Scale(1/n, r.Centroids[c])
	}
	r.Inertia = 0
	for i, p := range points {
		r.Near[i] = squared(p, r.Centroids[r.Labels[i]])
		r.Inertia += r.Near[i]
	}
}

func squared(a, b []float64) float64 { return squaredBelow(a, b, math.Inf(1)) }

// squaredBelow is the squared distance, or anything from limit up where it is no less:
// sums of squares only grow, and the rest need not be added.
func squaredBelow(a, b []float64, limit float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	for len(a) >= 16 {
		x, y := a[:16:16], b[:16:16]
		for j := 0; j < 16; j += 4 {
			d0, d1, d2, d3 := x[j]-y[j], x[j+1]-y[j+1], x[j+2]-y[j+2], x[j+3]-y[j+3]
			s0 += d0 * d0
			s1 += d1 * d1
			s2 += d2 * d2
			s3 += d3 * d3
		}
		if s := (s0 + s1) + (s2 + s3); s >= limit {
			return s
		}
		a, b = a[16:], b[16:]
	}
	for j := range a {
		d := a[j] - b[j]
		s0 += d * d
	}
	return (s0 + s1) + (s2 + s3)
}

// Silhouette returns the mean silhouette width of a partition (Rousseeuw, 1987),
// from -1 to 1: near 1 the clusters are well separated, near 0 they touch. A point alone
// in its cluster counts 0, and so does a partition into fewer than two clusters.
// distances are the squared ones of Distances; labels has one label, at least 0, for
// each point.
func Silhouette(distances [][]float64, labels []int) float64 {
	sizes := map[int]int{}
	top := 0
	for _, c := range labels {
		sizes[c]++
		top = max(top, c)
	}
	if len(sizes) < 2 {
		return 0
	}
	total, sums := 0.0, make([]float64, top+1)
	for i, own := range labels {
		if sizes[own] < 2 {
			continue
		}
		clear(sums)
		for j, d := range distances[i] {
			sums[labels[j]] += math.Sqrt(d)
		}
		inside := sums[own] / float64(sizes[own]-1)
		outside := math.Inf(1)
		for c, n := range sizes {
			if c != own {
				outside = min(outside, sums[c]/float64(n))
			}
		}
		if widest := max(inside, outside); widest > 0 {
			total += (outside - inside) / widest
		}
	}
	return total / float64(len(labels))
}
