package kmeans

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// lloyd moves the centroids in place.
func lloyd(points, centroids [][]float64, iterations int) Result {
	r := Result{Centroids: centroids, Labels: slices.Repeat([]int{-1}, len(points)), Near: make([]float64, len(points))}
	for range iterations {
		if !r.assign(points) {
			break
		}
		r.fillEmpty()
		r.recentre(points)
	}
	return r
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
