package stream

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

const (
	length = 4_000_000 // elements of each of the three arrays
	passes = 60        // per epoch
	pieces = 64
	probes = 16 // elements of a piece that are checked

	// factor makes a pass multiply a by factor² + 2·factor = 1, so that the numbers
	// neither grow nor vanish.
	factor = math.Sqrt2 - 1
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "stream",
		Summary: "move large arrays through memory",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p), nil },
	}
}

// triple is one element of each array. All elements of a piece are equal.
type triple struct{ A, B, C float64 }

// Streamer is the three arrays and what their elements should be.
type Streamer struct {
	params  epochs.Params
	a, b, c []float64
	want    [pieces]triple
}

// New makes the arrays.
func New(p epochs.Params) *Streamer {
	n := p.Size(length, 16*pieces)
	s := &Streamer{params: p, a: make([]float64, n), b: make([]float64, n), c: make([]float64, n)}
	rng := rand.New(rand.NewPCG(p.Stream(0)))
	for i := range s.want {
		s.want[i] = triple{A: 1 + rng.Float64(), B: rng.Float64(), C: rng.Float64()}
	}
	s.fill()
	return s
}

func (s *Streamer) fill() {
	s.params.Team.Each(pieces, func(piece int) {
		a, b, c := s.piece(piece)
		w := s.want[piece]
		for i := range a {
			a[i], b[i], c[i] = w.A, w.B, w.C
		}
	})
}

func (s *Streamer) piece(i int) (a, b, c []float64) {
	lo, hi := team.Span(len(s.a), pieces, i)
	return s.a[lo:hi:hi], s.b[lo:hi:hi], s.c[lo:hi:hi]
}

// Epoch does so many passes. Each of the four loops goes through whole arrays
// before the next one starts, so that nothing is still in a cache.
func (s *Streamer) Epoch(context.Context, int) (epochs.Result, error) {
	for range passes {
		s.each(func(a, _, c []float64) { copy(c, a) })
		s.each(func(_, b, c []float64) { scale(b, c) })
		s.each(add)
		s.each(triad)
		for i := range s.want {
			w := &s.want[i]
			w.C = w.A
			w.B = factor * w.C
			w.C = w.A + w.B
			w.A = w.B + factor*w.C
		}
	}
	return s.check(), nil
}

func (s *Streamer) each(f func(a, b, c []float64)) {
	s.params.Team.Each(pieces, func(piece int) { f(s.piece(piece)) })
}

func scale(b, c []float64) {
	c = c[:len(b)]
	for i := range b {
		b[i] = factor * c[i]
	}
}

func add(a, b, c []float64) {
	a, b = a[:len(c)], b[:len(c)]
	for i := range c {
		c[i] = a[i] + b[i]
	}
}

func triad(a, b, c []float64) {
	b, c = b[:len(a)], c[:len(a)]
	for i := range a {
		a[i] = b[i] + factor*c[i]
	}
}

func (s *Streamer) check() epochs.Result {
	worst, right := 0.0, 0
	for piece, w := range s.want {
		a, b, c := s.piece(piece)
		for k := range probes {
			i := k * (len(a) - 1) / (probes - 1)
			off := max(relative(a[i], w.A), relative(b[i], w.B), relative(c[i], w.C))
			worst = max(worst, off)
			if off == 0 {
				right++
			}
		}
	}
	return epochs.Result{Loss: worst, Acc: float64(right) / float64(pieces*probes)}
}

func relative(got, want float64) float64 { return math.Abs(got-want) / math.Abs(want) }

// Save writes what the elements are.
func (s *Streamer) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, &s.want) }

// Load reads what Save wrote and fills the arrays with it.
func (s *Streamer) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, &s.want); err != nil {
		return fmt.Errorf("read elements: %w", err)
	}
	s.fill()
	return nil
}
