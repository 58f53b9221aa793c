package stream

import (
	"testing"

	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

func TestEveryElementIsWhatTheArithmeticSays(t *testing.T) {
	t.Parallel()
	s := New(epochs.Params{Input: 1, Seed: 1, Scale: 0.002, Team: team.New(2)})
	start := s.want
	for n := 1; n <= 3; n++ {
		r, err := s.Epoch(t.Context(), n)
		if err != nil || r.Loss != 0 || r.Acc != 1 {
			t.Fatalf("epoch %d: %+v, %v", n, r, err)
		}
	}
	for piece := range s.want {
		a, b, c := s.piece(piece)
		for i := range a {
			if w := s.want[piece]; a[i] != w.A || b[i] != w.B || c[i] != w.C {
				t.Fatalf("piece %d, element %d: %g %g %g, want %+v", piece, i, a[i], b[i], c[i], w)
			}
		}
		if drift := relative(a[0], start[piece].A); drift > 1e-9 {
			t.Errorf("piece %d drifted by %g", piece, drift)
		}
	}
}

func TestAWrongElementIsFound(t *testing.T) {
	t.Parallel()
	s := New(epochs.Params{Input: 1, Seed: 1, Scale: 0.002, Team: team.New(1)})
	s.b[len(s.b)-1] *= 1 + 1e-12
	if r := s.check(); r.Loss == 0 || r.Acc == 1 {
		t.Errorf("got %+v for a wrong element", r)
	}
}
