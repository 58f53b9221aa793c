package jacobi

import (
	"math"
	"testing"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func params() epochs.Params {
	return epochs.Params{Input: 1, Seed: 1, Scale: 0.0001, Epochs: 6, Team: team.New(2)}
}

// The sine is an eigenfunction of the discrete equation: with a source of
// sin(pi x) sin(pi y) the field is that divided by 4 - 4 cos(pi h).
func TestSweepsConvergeToTheKnownSolution(t *testing.T) {
	t.Parallel()
	s := New(params())
	h := math.Pi / float64(s.n+1)
	wave := func(i, j int) float64 { return math.Sin(float64(i)*h) * math.Sin(float64(j)*h) }
	for i := 1; i <= s.n; i++ {
		for j := 1; j <= s.n; j++ {
			s.row(s.heat, i)[j] = wave(i, j)
		}
	}
	s.first = s.residual()
	for n := 1; n <= 100; n++ {
		if _, err := s.Epoch(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	scale := 1 / (4 - 4*math.Cos(h))
	for i := range s.n + 2 {
		for j := range s.n + 2 {
			want := 0.0
			if i > 0 && i <= s.n && j > 0 && j <= s.n {
				want = scale * wave(i, j)
			}
			if got := s.row(s.field, i)[j]; math.Abs(got-want) > 1e-6*scale {
				t.Fatalf("%d cells a side: field at %d,%d is %g, want %g", s.n, i, j, got, want)
			}
		}
	}
}

func TestTheResidualFalls(t *testing.T) {
	t.Parallel()
	s := New(params())
	last := epochs.Result{Loss: s.first}
	for n := 1; n <= 3; n++ {
		r, err := s.Epoch(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if r.Loss >= last.Loss || r.Acc <= last.Acc || r.Loss <= 0 {
			t.Errorf("epoch %d: %+v after %+v", n, r, last)
		}
		last = r
	}
}
