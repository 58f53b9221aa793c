package jacobi

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
	side     = 800  // inner rows and columns
	sweeps   = 1000 // per epoch
	rowGroup = 32   // pieces that the rows are cut into
	sources  = 12
)

// Kind is the entry of this work in the list of kinds.
func Kind() epochs.Kind {
	return epochs.Kind{
		Name:    "jacobi",
		Summary: "solve Poisson's equation by Jacobi sweeps, a barrier after each",
		New:     func(p epochs.Params) (epochs.Work, error) { return New(p), nil },
	}
}

// Solver is a field on a grid with a fixed border, and what heats it.
type Solver struct {
	params epochs.Params
	n      int       // inner rows and columns
	sweeps int       // per epoch
	field  []float64 // (n+2)², what the checkpoint holds
	next   []float64
	heat   []float64 // the source times the square of the mesh width
	first  float64   // residual before the first sweep
}

// New places the sources. The field is zero at first.
func New(p epochs.Params) *Solver {
	// The work of an epoch is the cells times the sweeps.
	share := math.Cbrt(float64(p.Size(1_000_000, 1)) / 1_000_000)
	s := &Solver{params: p, n: max(int(side*share), 16), sweeps: max(int(sweeps*share), 1)}
	w := s.n + 2
	s.field = make([]float64, w*w)
	s.next = make([]float64, w*w)
	s.heat = make([]float64, w*w)
	rng := rand.New(rand.NewPCG(p.Stream(0)))
	for range sources {
		s.place(rng.Float64(), rng.Float64(), 0.02+0.06*rng.Float64(), rng.NormFloat64())
	}
	s.first = s.residual()
	return s
}

// place adds a Gaussian source; places and width are shares of the side.
func (s *Solver) place(x, y, width, strength float64) {
	h := 1 / float64(s.n+1)
	s.params.Team.Each(rowGroup, func(piece int) {
		lo, hi := team.Span(s.n, rowGroup, piece)
		for i := lo + 1; i <= hi; i++ {
			dy := float64(i)*h - y
			row := s.row(s.heat, i)
			for j := 1; j <= s.n; j++ {
				dx := float64(j)*h - x
				row[j] += strength * math.Exp(-(dx*dx+dy*dy)/(width*width)) * h * h
			}
		}
	})
}

func (s *Solver) row(grid []float64, i int) []float64 {
	w := s.n + 2
	return grid[i*w : (i+1)*w : (i+1)*w]
}

// Epoch does so many sweeps.
func (s *Solver) Epoch(context.Context, int) (epochs.Result, error) {
	for range s.sweeps {
		s.params.Team.Each(rowGroup, s.sweep)
		s.field, s.next = s.next, s.field
	}
	r := s.residual()
	return epochs.Result{Loss: r, Acc: min(max(1-r/s.first, 0), 1)}, nil
}

func (s *Solver) sweep(piece int) {
	lo, hi := team.Span(s.n, rowGroup, piece)
	for i := lo + 1; i <= hi; i++ {
		relax(s.row(s.next, i), s.row(s.field, i-1), s.row(s.field, i), s.row(s.field, i+1), s.row(s.heat, i))
	}
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

// residual is the root mean square of what is left of the equation, in the units
// of the field.
func (s *Solver) residual() float64 {
	sum := s.params.Team.Sum(rowGroup, func(piece int) float64 {
		lo, hi := team.Span(s.n, rowGroup, piece)
		t := 0.0
		for i := lo + 1; i <= hi; i++ {
			above, row, below, heat := s.row(s.field, i-1), s.row(s.field, i), s.row(s.field, i+1), s.row(s.heat, i)
			for j := 1; j <= s.n; j++ {
				r := row[j-1] + row[j+1] + above[j] + below[j] + heat[j] - 4*row[j]
				t += r * r
			}
		}
		return t
	})
	return math.Sqrt(sum) / float64(s.n)
}

// Save writes the field.
func (s *Solver) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, s.field) }

// Load reads what Save wrote.
func (s *Solver) Load(r io.Reader) error {
	if err := binary.Read(r, binary.LittleEndian, s.field); err != nil {
		return fmt.Errorf("read field: %w", err)
	}
	return nil
}
