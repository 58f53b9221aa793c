package propose

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

func TestALatinHypercubeHasOnePointInEachStratumOfEachAxis(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, axes := rapid.IntRange(1, 20).Draw(t, "n"), rapid.IntRange(1, 6).Draw(t, "axes")
		points := latinHypercube(n, axes, luck(rapid.Uint64().Draw(t, "seed")))
		for a := range axes {
			var strata []int
			for _, p := range points {
				strata = append(strata, int(p[a]*float64(n)))
			}
			slices.Sort(strata)
			for i, s := range strata {
				if s != i {
					t.Fatalf("axis %d: strata %v", a, strata)
				}
			}
		}
	})
}

func TestAGridIsAFullFactorialOfAtMostThatManyPoints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, axes := rapid.IntRange(1, 40).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "axes")
		points := grid(n, axes, luck(rapid.Uint64().Draw(t, "seed")))
		product := 1
		for a := range axes {
			levels := map[float64]bool{}
			for _, p := range points {
				levels[p[a]] = true
			}
			product *= len(levels)
			if len(levels) > 1 && (!levels[0] || !levels[1]) {
				t.Fatalf("axis %d has levels %v: want both ends", a, levels)
			}
		}
		if len(points) > n || product != len(points) {
			t.Fatalf("%d points of at most %d, %d combinations", len(points), n, product)
		}
		// One more level anywhere would be too many.
		if smallest := math.Pow(float64(len(points)), 1/float64(axes)); float64(len(points))*(math.Floor(smallest)+1)/math.Floor(smallest) <= float64(n) {
			t.Fatalf("%d points of %d on %d axes: one more level would fit", len(points), n, axes)
		}
	})
}

func settings(batch, rate float64, schedule string) tuning.Settings {
	return tuning.Settings{"batch": tuning.Number(batch), "rate": tuning.Number(rate), "schedule": tuning.Word(schedule), "fixed": tuning.Number(3)}
}

func few() []tuning.Settings {
	var out []tuning.Settings
	for i, b := range []float64{8, 16, 32, 64, 128, 256} {
		for _, w := range []string{"static", "dynamic"} {
			out = append(out, settings(b, 100+float64(i%3)*50, w))
		}
	}
	return out
}

func TestASpaceHoldsWhatDiffersOnTheScaleThatIsMoreEven(t *testing.T) {
	t.Parallel()
	got := Of(few())
	want := []Axis{
		{Knob: "batch", Scale: tuning.Log, Low: 8, High: 256},
		{Knob: "schedule", Words: []string{"dynamic", "static"}},
	}
	if diff := cmp.Diff(want, got.Axes); diff != "" {
		t.Errorf("rate follows batch and fixed never differs (-want +got):\n%s", diff)
	}
	at := got.Of([]tuning.Settings{settings(16, 100, "static"), settings(256, 100, "guided")})
	if diff := cmp.Diff([][]float64{{0.2, 1}, {1, -1}}, at, near()); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

func near() cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
}

func TestTheUnitOfAKnobDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfNDistinct(rapid.Float64Range(0.01, 1000), 3, 12, rapid.ID).Draw(t, "values")
		unit := rapid.Float64Range(0.001, 1000).Draw(t, "unit")
		var plain, scaled []tuning.Settings
		for _, v := range values {
			plain = append(plain, tuning.Settings{"x": tuning.Number(v)})
			scaled = append(scaled, tuning.Settings{"x": tuning.Number(v * unit)})
		}
		if diff := cmp.Diff(Of(plain).Points, Of(scaled).Points, near()); diff != "" {
			t.Fatalf("times %g (-want +got):\n%s", unit, diff)
		}
	})
}

func TestSnapPicksDifferentCandidatesNearestFirst(t *testing.T) {
	t.Parallel()
	c := Of(few())
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		got := c.snap(latinHypercube(n, 2, luck(rapid.Uint64().Draw(t, "seed"))))
		if len(got) != min(n, len(c.Points)) {
			t.Fatalf("%d of %d candidates for %d points", len(got), len(c.Points), n)
		}
		if unique := slices.Compact(slices.Sorted(slices.Values(got))); len(unique) != len(got) {
			t.Fatalf("one candidate twice: %v", got)
		}
	})
	if got := c.snap([][]float64{{1, 0.9}, {1, 0.9}}); !cmp.Equal(got, []int{10, 8}) {
		t.Errorf("candidates %v, want the last static one and then its neighbour", got)
	}
}

func TestAKnobOfNumbersThatSomeSettingsLackLiesInItsMiddleThere(t *testing.T) {
	t.Parallel()
	var all []tuning.Settings
	for i := range 9 {
		all = append(all, tuning.Settings{"optimizer": tuning.Word("adam"), "rate": tuning.Number(float64(i))},
			tuning.Settings{"optimizer": tuning.Word("sgd"), "rate": tuning.Number(float64(i)), "momentum": tuning.Number(0.5 + float64(i%3)/10)})
	}
	c := Of(all)
	var names []string
	for _, a := range c.Axes {
		names = append(names, a.Knob)
		if a.Knob != "optimizer" && len(a.Words) > 0 {
			t.Errorf("%s has words: %v", a.Knob, a.Words)
		}
	}
	if want := []string{"momentum", "optimizer", "rate"}; !cmp.Equal(names, want) {
		t.Fatalf("axes %v, want %v", names, want)
	}
	if c.Points[0][0] != 0.5 || c.Points[1][0] != 0 {
		t.Errorf("momentum is at %g without a value, at %g where it is least", c.Points[0][0], c.Points[1][0])
	}
}
