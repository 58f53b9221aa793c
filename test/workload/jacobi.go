package main

import (
	"context"
	"math"
	"math/rand/v2"
)

const (
	jacobiSide    = 800  // inner rows and columns
	jacobiSweeps  = 1000 // per epoch
	jacobiPieces  = 32   // that the rows are cut into
	jacobiSources = 12
)

// jacobi solves Poisson's equation on a grid with a fixed border: a barrier after each
// short sweep.
type jacobi struct {
	params params
	n      int       // inner rows and columns
	sweeps int       // per epoch
	field  []float64 // (n+2)²
	next   []float64
	heat   []float64 // the source times the square of the mesh width
	first  float64   // residual before the first sweep
}

// newJacobi places the sources. The field is zero at first.
func newJacobi(p params) (work, error) {
	// The work of an epoch is the cells times the sweeps.
	share := math.Cbrt(float64(p.size(1_000_000, 1)) / 1_000_000)
	s := &jacobi{params: p, n: max(int(jacobiSide*share), 16), sweeps: max(int(jacobiSweeps*share), 1)}
	cells := (s.n + 2) * (s.n + 2)
	s.field, s.next, s.heat = make([]float64, cells), make([]float64, cells), make([]float64, cells)
	rng := rand.New(rand.NewPCG(p.stream(0)))
	for range jacobiSources {
		s.place(rng.Float64(), rng.Float64(), 0.02+0.06*rng.Float64(), rng.NormFloat64())
	}
	s.first = s.residual()
	return s, nil
}

// rows calls f for every inner row of a piece.
func (s *jacobi) rows(piece int, f func(i int)) {
	lo, hi := span(s.n, jacobiPieces, piece)
	for i := lo + 1; i <= hi; i++ {
		f(i)
	}
}

func (s *jacobi) row(grid []float64, i int) []float64 {
	w := s.n + 2
	return grid[i*w : (i+1)*w : (i+1)*w]
}

// place adds a Gaussian source; places and width are shares of the side.
func (s *jacobi) place(x, y, width, strength float64) {
	h := 1 / float64(s.n+1)
	s.params.team.each(jacobiPieces, func(piece int) {
		s.rows(piece, func(i int) {
			dy := float64(i)*h - y
			row := s.row(s.heat, i)
			for j := 1; j <= s.n; j++ {
				dx := float64(j)*h - x
				row[j] += strength * math.Exp(-(dx*dx+dy*dy)/(width*width)) * h * h
			}
		})
	})
}

func (s *jacobi) epoch(context.Context, int) (result, error) {
	for range s.sweeps {
		s.params.team.each(jacobiPieces, func(piece int) {
			s.rows(piece, func(i int) {
				relax(s.row(s.next, i), s.row(s.field, i-1), s.row(s.field, i), s.row(s.field, i+1), s.row(s.heat, i))
			})
		})
		s.field, s.next = s.next, s.field
	}
	r := s.residual()
	return result{loss: r, acc: min(max(1-r/s.first, 0), 1)}, nil
}

// relax sets each cell of a row to the mean of its neighbours plus its source.
func relax(out, above, row, below, heat []float64) {
	n := len(out) - 2
	if n < 1 {
		return
	}
	left, right := row[:n], row[2:2+n]
	above, below, heat, out = above[1:1+n], below[1:1+n], heat[1:1+n], out[1:1+n]
	for j := range left {
		out[j] = 0.25 * (left[j] + right[j] + (above[j] + below[j]) + heat[j])
	}
}

// residual is the root mean square of what is left of the equation, in the units of the
// field.
func (s *jacobi) residual() float64 {
	sum := s.params.team.sum(jacobiPieces, func(piece int) float64 {
		t := 0.0
		s.rows(piece, func(i int) {
			above, row, below, heat := s.row(s.field, i-1), s.row(s.field, i), s.row(s.field, i+1), s.row(s.heat, i)
			for j := 1; j <= s.n; j++ {
				r := row[j-1] + row[j+1] + above[j] + below[j] + heat[j] - 4*row[j]
				t += r * r
			}
		})
		return t
	})
	return math.Sqrt(sum) / float64(s.n)
}

func (s *jacobi) state() []any { return []any{s.field} }
