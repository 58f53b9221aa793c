package design_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/search/design"
	"pitchpipe/controller/tuning"
)

func luck(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func TestALatinHypercubeHasOnePointInEachStratumOfEachAxis(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, axes := rapid.IntRange(1, 20).Draw(t, "n"), rapid.IntRange(1, 6).Draw(t, "axes")
		points := design.LatinHypercube(n, axes, rapid.IntRange(0, 5).Draw(t, "draws"), luck(rapid.Uint64().Draw(t, "seed")))
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
		points := design.Grid(n, axes, luck(rapid.Uint64().Draw(t, "seed")))
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
	got := design.Of(few())
	want := design.Space{Axes: []design.Axis{
		{Knob: "batch", Scale: tuning.Log, Low: 8, High: 256},
		{Knob: "schedule", Words: []string{"dynamic", "static"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rate follows batch and fixed never differs (-want +got):\n%s", diff)
	}
	linear := design.Of(few(), tuning.Knob{Name: "batch", Scale: tuning.Linear})
	if linear.Axes[0].Scale != tuning.Linear {
		t.Errorf("batch is %s, the knob says linear", linear.Axes[0].Scale)
	}
	if diff := cmp.Diff([]float64{0.2, 1}, got.Point(settings(16, 100, "static")), near()); diff != "" {
		t.Errorf("point (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]int{{0, 1}, {5, 0}}, pick(got.Levels(got.Points(few()), 6), 0, 11)); diff != "" {
		t.Errorf("levels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]int{{0, 1}, {2, 0}}, pick(got.Levels(got.Points(few()), 3), 0, 11)); diff != "" {
		t.Errorf("fewer levels than values (-want +got):\n%s", diff)
	}
}

func near() cmp.Option {
	return cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
}

func pick[T any](list []T, at ...int) []T {
	var out []T
	for _, i := range at {
		out = append(out, list[i])
	}
	return out
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
		a, b := design.Of(plain), design.Of(scaled)
		if diff := cmp.Diff(a.Points(plain), b.Points(scaled), near()); diff != "" {
			t.Fatalf("times %g (-want +got):\n%s", unit, diff)
		}
	})
}

func TestSnapPicksDifferentCandidatesNearestFirst(t *testing.T) {
	t.Parallel()
	space := design.Of(few())
	points := space.Points(few())
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "n")
		got := space.Snap(design.LatinHypercube(n, 2, 3, luck(rapid.Uint64().Draw(t, "seed"))), points)
		if len(got) != min(n, len(points)) {
			t.Fatalf("%d of %d candidates for %d points", len(got), len(points), n)
		}
		if unique := slices.Compact(slices.Sorted(slices.Values(got))); len(unique) != len(got) {
			t.Fatalf("one candidate twice: %v", got)
		}
	})
	if got := space.Snap([][]float64{{1, 0.9}, {1, 0.9}}, points); !cmp.Equal(got, []int{10, 8}) {
		t.Errorf("candidates %v, want the last static one and then its neighbour", got)
	}
}

func TestWhatWasSeenIsSummedUp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		seen  []design.Seen
		least int
		worst float64
		some  bool
	}{
		{"nothing", nil, -1, math.Inf(-1), false},
		{"failures only", []design.Seen{{At: 1, Failed: true}}, -1, math.Inf(-1), false},
		{"a failure is never the least", []design.Seen{{At: 1, Log: -9, Failed: true}, {At: 2, Log: 3}, {At: 0, Log: 1}}, 0, 3, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			worst, some := design.Worst(tc.seen)
			if least := design.Least(tc.seen); least != tc.least || worst != tc.worst || some != tc.some {
				t.Errorf("least %d, worst %g, %t", least, worst, some)
			}
		})
	}
	if got := design.Tried([]design.Seen{{At: 1, Failed: true}}, 3); !cmp.Equal(got, []bool{false, true, false}) {
		t.Errorf("tried %v: a failure was tried", got)
	}
}
