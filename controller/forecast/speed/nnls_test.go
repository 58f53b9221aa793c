package speed

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestNNLSIsNeverNegativeAndNoStepMakesItBetter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows, columns := rapid.IntRange(1, 8).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "columns")
		a, b := make([][]float64, rows), make([]float64, rows)
		for i := range a {
			a[i] = rapid.SliceOfN(rapid.Float64Range(0, 5), columns, columns).Draw(t, "row")
			b[i] = rapid.Float64Range(-1, 5).Draw(t, "right")
		}
		const ridge = 1e-3
		loss := func(x []float64) float64 {
			var sum float64
			for i, row := range a {
				r := -b[i]
				for j, v := range row {
					r += v * x[j]
				}
				sum += r * r
			}
			for j := range x {
				var square float64
				for _, row := range a {
					square += row[j] * row[j]
				}
				sum += ridge * x[j] * x[j] * square
			}
			return sum
		}
		x := nnls(a, b, ridge)
		best := loss(x)
		for j := range x {
			if !(x[j] >= 0) || math.IsInf(x[j], 0) {
				t.Fatalf("%v", x)
			}
			for _, step := range []float64{-1e-2, 1e-2} {
				y := append([]float64(nil), x...)
				if y[j] = max(y[j]+step, 0); loss(y) < best-1e-6 {
					t.Fatalf("%v is worse than %v", x, y)
				}
			}
		}
	})
}

func TestNNLSFindsWhatMadeTheData(t *testing.T) {
	t.Parallel()
	a := [][]float64{{1, 1, 0}, {1, 0.5, 1}, {1, 0.25, 2}, {1, 0.125, 5}}
	want := []float64{0.5, 2, 0}
	b := make([]float64, len(a))
	for i, row := range a {
		for j, v := range row {
			b[i] += v * want[j]
		}
	}
	for j, v := range nnls(a, b, 0) {
		if math.Abs(v-want[j]) > 1e-4 {
			t.Errorf("parameter %d is %g, want %g", j, v, want[j])
		}
	}
	if got := nnls(nil, nil, 0); got != nil {
		t.Errorf("%v of nothing", got)
	}
}
