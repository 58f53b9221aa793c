package main

import (
	"context"
	"math"
	"math/rand/v2"
)

const (
	streamLength = 4_000_000 // elements of each of the three arrays
	streamPasses = 60        // per epoch
	streamProbes = 16        // elements of a piece that are checked

	// streamFactor makes a pass multiply a by factor² + 2·factor = 1, so that the numbers
	// do not grow or vanish.
	streamFactor = math.Sqrt2 - 1
)

// stream moves three large arrays through memory.
type stream struct {
	params  params
	a, b, c []float64
	want    [pieces]triple // what the elements should be
}

// triple is one element of each array. All elements of a piece are equal.
type triple struct{ A, B, C float64 }

func newStream(p params) (work, error) {
	n := p.size(streamLength, 16*pieces)
	s := &stream{params: p, a: make([]float64, n), b: make([]float64, n), c: make([]float64, n)}
	rng := rand.New(rand.NewPCG(p.stream(0)))
	for i := range s.want {
		s.want[i] = triple{A: 1 + rng.Float64(), B: rng.Float64(), C: rng.Float64()}
	}
	s.restored()
	return s, nil
}

// each calls f for every piece of the arrays.
func (s *stream) each(f func(piece int, a, b, c []float64)) {
	s.params.team.each(pieces, func(piece int) {
		lo, hi := span(len(s.a), pieces, piece)
		f(piece, s.a[lo:hi:hi], s.b[lo:hi:hi], s.c[lo:hi:hi])
	})
}

// epoch does so many passes. Each of the four loops goes through whole arrays before the
// next one starts, so that nothing is still in a cache.
func (s *stream) epoch(context.Context, int) (result, error) {
	for range streamPasses {
		s.each(func(_ int, a, _, c []float64) { copy(c, a) })
		s.each(func(_ int, _, b, c []float64) {
			c = c[:len(b)]
			for i := range b {
				b[i] = streamFactor * c[i]
			}
		})
		s.each(func(_ int, a, b, c []float64) {
			a, b = a[:len(c)], b[:len(c)]
			for i := range c {
				c[i] = a[i] + b[i]
			}
		})
		s.each(func(_ int, a, b, c []float64) {
			b, c = b[:len(a)], c[:len(a)]
			for i := range a {
				a[i] = b[i] + streamFactor*c[i]
			}
		})
		for i := range s.want {
			w := &s.want[i]
			w.B = streamFactor * w.A
			w.C = w.A + w.B
			w.A = w.B + streamFactor*w.C
		}
	}
	return s.check(), nil
}

func (s *stream) check() result {
	var worst [pieces]float64
	var good [pieces]int
	s.each(func(piece int, a, b, c []float64) {
		w := s.want[piece]
		for k := range streamProbes {
			i := k * (len(a) - 1) / (streamProbes - 1)
			off := max(relative(a[i], w.A), relative(b[i], w.B), relative(c[i], w.C))
			worst[piece] = max(worst[piece], off)
			if off == 0 {
				good[piece]++
			}
		}
	})
	out, all := result{}, 0
	for piece := range worst {
		out.loss = max(out.loss, worst[piece])
		all += good[piece]
	}
	out.acc = float64(all) / float64(pieces*streamProbes)
	return out
}

func relative(got, want float64) float64 { return math.Abs(got-want) / math.Abs(want) }

func (s *stream) state() []any { return []any{&s.want} }

// restored fills the arrays with what their elements should be.
func (s *stream) restored() {
	s.each(func(piece int, a, b, c []float64) {
		w := s.want[piece]
		for i := range a {
			a[i], b[i], c[i] = w.A, w.B, w.C
		}
	})
}
