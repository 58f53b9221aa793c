package kmeans

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

const (
	points   = 400_000
	dims     = 16
	clusters = 192
	blobs    = 64 // that the points are drawn from
	seeding  = 3000

	pieces = 64
)

type point = [dims]float32

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "kmeans",
		Summary: "cluster points by Lloyd's algorithm, one pass an epoch",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p), nil },
	}
}

// Clustering is points and the centres found so far.
type Clustering struct {
	params   epochs.Params
	points   []point
	variance float64         // of the points around their mean
	centres  [clusters]point // what the checkpoint holds
	partial  [pieces]partial // one per piece of the points
}

// partial is what one piece of the points adds to the centres.
type partial struct {
	sum     [clusters][dims]float64
	count   [clusters]int64
	inertia float64
}

// New makes the points and first centres.
func New(p epochs.Params) *Clustering {
	c := &Clustering{params: p, points: draw(p, p.Size(points, 4*clusters))}
	rng := rand.New(rand.NewPCG(p.Stream(1)))
	c.centres = plusPlus(c.points[:min(seeding, len(c.points))], rng)
	c.variance = c.spread()
	return c
}

func draw(p epochs.Params, n int) []point {
	rng := rand.New(rand.NewPCG(p.Stream(0)))
	var middle [blobs]point
	var width [blobs]float64
	for b := range middle {
		for d := range middle[b] {
			middle[b][d] = float32(2 * rng.NormFloat64())
		}
		width[b] = 0.6 + rng.Float64()
	}
	out := make([]point, n)
	p.Team.Each(pieces, func(piece int) {
		rng := rand.New(rand.NewPCG(p.Stream(uint64(piece) + 16)))
		lo, hi := team.Span(n, pieces, piece)
		for i := lo; i < hi; i++ {
			b := rng.IntN(blobs)
			for d := range out[i] {
				out[i][d] = middle[b][d] + float32(width[b]*rng.NormFloat64())
			}
		}
	})
	return out
}

// plusPlus picks centres as k-means++ does (Arthur and Vassilvitskii, 2007).
func plusPlus(from []point, rng *rand.Rand) [clusters]point {
	var centres [clusters]point
	centres[0] = from[rng.IntN(len(from))]
	near := make([]float64, len(from))
	total := 0.0
	for i := range from {
		near[i] = float64(distance(&from[i], &centres[0]))
		total += near[i]
	}
	for k := 1; k < clusters; k++ {
		pick, left := 0, rng.Float64()*total
		for pick < len(near)-1 && left >= near[pick] {
			left -= near[pick]
			pick++
		}
		centres[k] = from[pick]
		total = 0
		for i := range from {
			near[i] = min(near[i], float64(distance(&from[i], &centres[k])))
			total += near[i]
		}
	}
	return centres
}

func (c *Clustering) spread() float64 {
	var sum [pieces][dims]float64
	c.params.Team.Each(pieces, func(piece int) {
		lo, hi := team.Span(len(c.points), pieces, piece)
		var mine [dims]float64
		for i := lo; i < hi; i++ {
			for d, v := range &c.points[i] {
				mine[d] += float64(v)
			}
		}
		sum[piece] = mine
	})
	var mean point
	for d := range mean {
		t := 0.0
		for piece := range sum {
			t += sum[piece][d]
		}
		mean[d] = float32(t / float64(len(c.points)))
	}
	return c.params.Team.Sum(pieces, func(piece int) float64 {
		lo, hi := team.Span(len(c.points), pieces, piece)
		t := 0.0
		for i := lo; i < hi; i++ {
			t += float64(distance(&c.points[i], &mean))
		}
		return t
	})
}

// Epoch gives every point to its nearest centre and moves each centre to the
// middle of its points. A centre without points stays where it is.
func (c *Clustering) Epoch(context.Context, int) (epochs.Result, error) {
	c.params.Team.Each(pieces, c.assign)
	inertia := 0.0
	for piece := range c.partial {
		inertia += c.partial[piece].inertia
	}
	for k := range c.centres {
		var sum [dims]float64
		var count int64
		for piece := range c.partial {
			count += c.partial[piece].count[k]
			for d, v := range &c.partial[piece].sum[k] {
				sum[d] += v
			}
		}
		if count == 0 {
			continue
		}
		for d := range sum {
			c.centres[k][d] = float32(sum[d] / float64(count))
		}
	}
	return epochs.Result{Loss: inertia / float64(len(c.points)), Acc: max(1-inertia/c.variance, 0)}, nil
}

func (c *Clustering) assign(piece int) {
	lo, hi := team.Span(len(c.points), pieces, piece)
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

func nearest(p *point, centres *[clusters]point) (k int, near float32) {
	near = distance(p, &centres[0])
	for i := 1; i < clusters; i++ {
		if d := distance(p, &centres[i]); d < near {
			k, near = i, d
		}
	}
	return k, near
}

// distance is the square of the Euclidean one. Four sums keep an addition from
// waiting for the one before it.
func distance(a, b *point) float32 {
	var s0, s1, s2, s3 float32
	for d := 0; d < dims; d += 4 {
		x, y, z, w := a[d]-b[d], a[d+1]-b[d+1], a[d+2]-b[d+2], a[d+3]-b[d+3]
		s0 += x * x
		s1 += y * y
		s2 += z * z
		s3 += w * w
	}
	return s0 + s1 + (s2 + s3)
}

// Save writes the centres.
func (c *Clustering) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, &c.centres) }

// Load reads what Save wrote.
func (c *Clustering) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, &c.centres); err != nil {
		return fmt.Errorf("read centres: %w", err)
	}
	return nil
}
