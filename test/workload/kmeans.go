package main

import (
	"context"
	"math/rand/v2"
)

const (
	kmeansPoints   = 400_000
	kmeansDims     = 16
	kmeansClusters = 192
	kmeansBlobs    = 64   // that the points are drawn from
	kmeansSeeding  = 3000 // points that the first centres are picked from
)

type (
	point   = [kmeansDims]float32
	centres [kmeansClusters]point
)

// kmeans clusters points by Lloyd's algorithm.
type kmeans struct {
	params   params
	points   []point
	variance float64 // of the points around their mean
	centres  centres
	partial  [pieces]partial // one per piece of the points
}

// partial is what one piece of the points adds to the centres.
type partial struct {
	sum     [kmeansClusters][kmeansDims]float64
	count   [kmeansClusters]int64
	inertia float64
}

func newKMeans(p params) (work, error) {
	c := &kmeans{params: p, points: drawPoints(p, p.size(kmeansPoints, 4*kmeansClusters))}
	c.centres = plusPlus(c.points[:min(kmeansSeeding, len(c.points))], rand.New(rand.NewPCG(p.stream(1))))
	var sum, squares [kmeansDims]float64
	for i := range c.points {
		for d, v := range &c.points[i] {
			sum[d] += float64(v)
			squares[d] += float64(v) * float64(v)
		}
	}
	for d := range sum {
		c.variance += squares[d] - sum[d]*sum[d]/float64(len(c.points))
	}
	return c, nil
}

func drawPoints(p params, n int) []point {
	rng := rand.New(rand.NewPCG(p.stream(0)))
	var middle [kmeansBlobs]point
	var width [kmeansBlobs]float64
	for b := range middle {
		for d := range middle[b] {
			middle[b][d] = float32(2 * rng.NormFloat64())
		}
		width[b] = 0.6 + rng.Float64()
	}
	out := make([]point, n)
	p.team.each(pieces, func(piece int) {
		rng := rand.New(rand.NewPCG(p.stream(uint64(piece) + 16)))
		lo, hi := span(n, pieces, piece)
		for i := lo; i < hi; i++ {
			b := rng.IntN(kmeansBlobs)
			for d := range out[i] {
				out[i][d] = middle[b][d] + float32(width[b]*rng.NormFloat64())
			}
		}
	})
	return out
}

// plusPlus picks centres as k-means++ does (Arthur and Vassilvitskii, 2007).
func plusPlus(from []point, rng *rand.Rand) (out centres) {
	out[0] = from[rng.IntN(len(from))]
	near := make([]float64, len(from))
	total := 0.0
	for i := range from {
		near[i] = float64(distance(&from[i], &out[0]))
		total += near[i]
	}
	for k := 1; k < kmeansClusters; k++ {
		pick, left := 0, rng.Float64()*total
		for pick < len(near)-1 && left >= near[pick] {
			left -= near[pick]
			pick++
		}
		out[k] = from[pick]
		total = 0
		for i := range from {
			near[i] = min(near[i], float64(distance(&from[i], &out[k])))
			total += near[i]
		}
	}
	return out
}

// epoch gives every point to its nearest centre and moves each centre to the middle of its
// points. A centre without points stays where it is.
func (c *kmeans) epoch(context.Context, int) (result, error) {
	c.params.team.each(pieces, c.assign)
	inertia := 0.0
	for piece := range c.partial {
		inertia += c.partial[piece].inertia
	}
	for k := range c.centres {
		var sum [kmeansDims]float64
		var count int64
		for piece := range c.partial {
			count += c.partial[piece].count[k]
			for d, v := range &c.partial[piece].sum[k] {
				sum[d] += v
			}
		}
		for d := range sum {
			if count > 0 {
				c.centres[k][d] = float32(sum[d] / float64(count))
			}
		}
	}
	return result{loss: inertia / float64(len(c.points)), acc: max(1-inertia/c.variance, 0)}, nil
}

func (c *kmeans) assign(piece int) {
	lo, hi := span(len(c.points), pieces, piece)
	mine := &c.partial[piece]
	*mine = partial{}
	for i := lo; i < hi; i++ {
		p := &c.points[i]
		k, near := nearest(p, &c.centres)
		mine.inertia += float64(near)
		mine.count[k]++
		sum := &mine.sum[k]
		for d, v := range p {
			sum[d] += float64(v)
		}
	}
}

func nearest(p *point, from *centres) (k int, near float32) {
	near = distance(p, &from[0])
	for i := 1; i < kmeansClusters; i++ {
		if d := distance(p, &from[i]); d < near {
			k, near = i, d
		}
	}
	return k, near
}

// distance is the square of the Euclidean one. Four sums keep an addition from waiting for
// the one before it.
func distance(a, b *point) float32 {
	var s0, s1, s2, s3 float32
	for d := 0; d < kmeansDims; d += 4 {
		x, y, z, w := a[d]-b[d], a[d+1]-b[d+1], a[d+2]-b[d+2], a[d+3]-b[d+3]
		s0 += x * x
		s1 += y * y
		s2 += z * z
		s3 += w * w
	}
	return s0 + s1 + (s2 + s3)
}

func (c *kmeans) state() []any { return []any{&c.centres} }
