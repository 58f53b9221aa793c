package kmeans

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// slack keeps bounds on the safe side of rounding: what is within it is computed.
const slack = 1 - 1e-9

// descent is one run of Lloyd's iterations.
type descent struct {
	points  [][]float64
	r       Result
	other   []float64   // of each point, a bound below its distance to every centroid but its own
	gap     []float64   // of each centroid, half the distance to the nearest other
	changed []bool      // clusters that got or lost a point since they were centred
	moved   []float64   // how far each centroid moved last
	before  [][]float64 // centroids before they moved
}

// lloyd moves the centroids in place.
func lloyd(points, centroids [][]float64, iterations int) Result {
	k := len(centroids)
	d := descent{
		points: points, other: make([]float64, len(points)),
		r:   Result{Centroids: centroids, Labels: slices.Repeat([]int{-1}, len(points)), Near: slices.Repeat([]float64{math.Inf(1)}, len(points))},
		gap: make([]float64, k), changed: make([]bool, k), moved: make([]float64, k), before: make([][]float64, k),
	}
	for range iterations {
		if !d.assign() {
			break
		}
		for c := range d.before {
			d.before[c] = append(d.before[c][:0], d.r.Centroids[c]...)
		}
		d.fillEmpty()
		d.recentre()
		d.loosen()
		d.r.Trace = append(d.r.Trace, d.r.Inertia)
	}
	return d.r
}

// assign moves each point to its nearest centroid and reports whether any moved.
func (d *descent) assign() bool {
	d.spread()
	some := false
	for i, p := range d.points {
		c := d.r.Labels[i]
		if c >= 0 && math.Sqrt(d.r.Near[i]) < slack*max(d.gap[c], d.other[i]) {
			continue
		}
		if at := d.search(i, p); at != c {
			some = true
			if c >= 0 {
				d.changed[c] = true
			}
			d.r.Labels[i], d.changed[at] = at, true
		}
	}
	return some
}

// search finds the nearest centroid, and notes how far it and the next are. A point
// stays where it is as near, or equal points would circle; else ties fall to the lower
// index.
func (d *descent) search(i int, p []float64) int {
	at, best, next := -1, math.Inf(1), math.Inf(1)
	if c := d.r.Labels[i]; c >= 0 {
		at, best = c, squared(p, d.r.Centroids[c])
	}
	for c, centroid := range d.r.Centroids {
		if c == d.r.Labels[i] {
			continue
		}
		switch v := squaredBelow(p, centroid, next); {
		case v < best:
			at, best, next = c, v, best
		case v < next:
			next = v
		}
	}
	d.r.Near[i], d.other[i] = best, math.Sqrt(next)
	return at
}

// spread notes how far apart the centroids are: a point nearer to its own than half
// of that is nearer to no other.
func (d *descent) spread() {
	for c := range d.gap {
		d.gap[c] = math.Inf(1)
	}
	for a := range d.gap {
		for b := range a {
			half := math.Sqrt(squared(d.r.Centroids[a], d.r.Centroids[b])) / 2
			d.gap[a], d.gap[b] = min(d.gap[a], half), min(d.gap[b], half)
		}
	}
}

// fillEmpty gives each empty cluster the point that is farthest from its own
// centroid, out of a cluster that keeps another point.
func (d *descent) fillEmpty() {
	sizes := make([]int, len(d.r.Centroids))
	for _, c := range d.r.Labels {
		sizes[c]++
	}
	for c := range sizes {
		if sizes[c] > 0 {
			continue
		}
		farthest, at := -1.0, -1
		for i, p := range d.points {
			own := d.r.Labels[i]
			if sizes[own] < 2 {
				continue
			}
			if v := squared(p, d.r.Centroids[own]); v > farthest {
				farthest, at = v, i
			}
		}
		// k is at most the number of points, so some cluster has two.
		from := d.r.Labels[at]
		sizes[from]--
		d.changed[from], d.changed[c] = true, true
		d.r.Labels[at], sizes[c] = c, 1
		d.other[at] = 0
		copy(d.r.Centroids[c], d.points[at])
	}
}

// recentre moves the centroid of each cluster that changed to the mean of its points.
func (d *descent) recentre() {
	sums := make([]float64, len(d.r.Centroids))
	for c := range d.r.Centroids {
		if d.changed[c] {
			clear(d.r.Centroids[c])
		}
	}
	for i, p := range d.points {
		if c := d.r.Labels[i]; d.changed[c] {
			floats.Add(d.r.Centroids[c], p)
			sums[c]++
		}
	}
	for c := range d.r.Centroids {
		d.moved[c] = 0
		if d.changed[c] {
			floats.Scale(1/sums[c], d.r.Centroids[c])
			d.moved[c] = math.Sqrt(squared(d.r.Centroids[c], d.before[c]))
		}
	}
}

// loosen makes the bounds hold for the centroids where they are now, and sums the
// inertia.
func (d *descent) loosen() {
	first, second, far := 0.0, 0.0, -1
	for c, v := range d.moved {
		if v > first {
			first, second, far = v, first, c
		} else {
			second = max(second, v)
		}
	}
	d.r.Inertia = 0
	for i, p := range d.points {
		c := d.r.Labels[i]
		if d.changed[c] {
			d.r.Near[i] = squared(p, d.r.Centroids[c])
		}
		if c == far {
			d.other[i] -= second
		} else {
			d.other[i] -= first
		}
		d.r.Inertia += d.r.Near[i]
	}
	clear(d.changed)
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
