package recurring_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// cores is a space of one system knob with the given values.
func cores(own int, values ...float64) recurring.Space {
	s := recurring.Space{Knobs: []recurring.Knob{{Name: tuning.Cores, System: true}}, Own: own}
	for _, v := range values {
		s.Points = append(s.Points, tuning.Settings{tuning.Cores: tuning.Number(v)})
	}
	return s
}

// whole is a run of ten epochs under one point.
func whole(point int, seconds float64) recurring.Run {
	return recurring.Run{Weight: 1, Epochs: 10, Parts: []recurring.Part{{
		Point: point, Epochs: 10, Cost: tuning.Spent{Seconds: seconds, Joules: math.NaN()},
	}}}
}

// within is a run that was moved: so many epochs under each point.
func within(seconds map[int]float64) recurring.Run {
	r := recurring.Run{Weight: 1, Epochs: 10}
	for p := range 8 {
		if s, ok := seconds[p]; ok {
			r.Parts = append(r.Parts, recurring.Part{Point: p, Epochs: 3, Cost: tuning.Spent{Seconds: s, Joules: math.NaN()}})
		}
	}
	return r
}

func repeat(n int, r recurring.Run) []recurring.Run {
	var out []recurring.Run
	for range n {
		out = append(out, r)
	}
	return out
}

func join(runs ...[]recurring.Run) []recurring.Run {
	var out []recurring.Run
	for _, r := range runs {
		out = append(out, r...)
	}
	return out
}

func TestWhatPastRunsSayAboutTheNext(t *testing.T) {
	t.Parallel()
	faster := recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}
	space := cores(3, 1, 2, 4, 8)
	for _, tc := range []struct {
		name   string
		w      recurring.Whole
		want   int // the next point
		trying bool
		best   int
	}{
		{"nothing was measured: the owner's", recurring.Whole{}, 3, false, 3},
		{"the owner's was never measured: it comes first", recurring.Whole{Runs: repeat(3, whole(1, 1))}, 3, false, 3},
		{"the owner's was measured: its neighbour is tried", recurring.Whole{Runs: repeat(1, whole(3, 10))}, 2, true, 3},
		{
			"one lucky run is no proof and is repeated",
			recurring.Whole{
				Runs:   join(repeat(2, whole(3, 10)), repeat(1, whole(2, 8.5))),
				Barred: []bool{true, true, false, false},
			},
			2, true, 3,
		},
		{
			"many runs are a proof",
			recurring.Whole{Runs: join(repeat(6, whole(3, 10)), repeat(6, whole(2, 8)), repeat(1, whole(1, 20)))},
			2, false, 2,
		},
		{
			"a comparison within two runs is a proof too, whatever their inputs",
			recurring.Whole{Runs: []recurring.Run{within(map[int]float64{3: 10, 2: 8, 1: 20}), within(map[int]float64{3: 30, 2: 24, 1: 60})}},
			2, false, 2,
		},
		{
			"what differs as runs of one setting do is no proof",
			recurring.Whole{
				Runs:   join([]recurring.Run{whole(3, 5), whole(3, 20), whole(3, 10), whole(3, 9)}, repeat(2, whole(2, 6))),
				Barred: []bool{true, true, false, false},
			},
			2, true, 3,
		},
		{
			"what was clearly worse is not tried again",
			recurring.Whole{Runs: join(repeat(5, whole(3, 10)), repeat(1, whole(2, 15)))},
			3, false, 3,
		},
		{
			"what a run failed under is not tried again",
			recurring.Whole{Runs: repeat(3, whole(3, 10)), Failed: []int{2}, Barred: []bool{true, true, false, false}},
			3, false, 3,
		},
		{
			"what is barred is neither tried nor best",
			recurring.Whole{Runs: join(repeat(6, whole(3, 10)), repeat(6, whole(2, 5))), Barred: []bool{true, true, true, false}},
			3, false, 3,
		},
		{
			"runs on another machine say nothing of this one's seconds",
			recurring.Whole{
				Runs:   join(repeat(4, whole(3, 10)), elsewhere(repeat(4, whole(2, 1)))),
				Barred: []bool{true, true, false, false},
			},
			2, true, 3,
		},
		{
			"runs on two machines are compared on each",
			recurring.Whole{Runs: join(
				repeat(3, whole(3, 10)), repeat(3, whole(2, 5)), repeat(1, whole(1, 20)), elsewhere(join(repeat(3, whole(3, 2)), repeat(3, whole(2, 1)))),
			)},
			2, false, 2,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.w.Space, tc.w.Goal = space, faster
			got, err := tc.w.Next()
			if err != nil {
				t.Fatal(err)
			}
			if got.Next.Point != tc.want || got.Trying != tc.trying || got.Best.Point != tc.best {
				t.Errorf("got %+v, want point %d, trying %v, best %d", got, tc.want, tc.trying, tc.best)
			}
		})
	}
}

func elsewhere(runs []recurring.Run) []recurring.Run {
	out := append([]recurring.Run(nil), runs...)
	for i := range out {
		out[i].Place = "another"
	}
	return out
}

func TestASettingThatBreaksTheLimitOfTimeIsNeverTheBest(t *testing.T) {
	t.Parallel()
	w := recurring.Whole{Space: cores(1, 4, 8), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 1.1}}
	for range 8 {
		for p, c := range []tuning.Spent{{Seconds: 13, Joules: 50}, {Seconds: 10, Joules: 100}} {
			w.Runs = append(w.Runs, recurring.Run{Weight: 1, Epochs: 10, Parts: []recurring.Part{{Point: p, Epochs: 10, Cost: c}}})
		}
	}
	got, err := w.Next()
	if err != nil || got.Best.Point != 1 {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestHyperparametersAreComparedByWholeRunsAndNotByEpochs(t *testing.T) {
	t.Parallel()
	w := recurring.Whole{Space: batches(2, 0), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}}
	longer := whole(1, 5) // half the time an epoch, three times the epochs
	longer.Epochs = 30
	w.Runs = join(repeat(6, whole(0, 10)), repeat(6, longer))
	if got, err := w.Next(); err != nil || got.Best.Point != 0 {
		t.Errorf("got %+v, error %v", got, err)
	}
	unfinished := whole(1, 2)
	unfinished.Epochs = 0
	w.Runs = join(repeat(6, whole(0, 10)), repeat(6, unfinished))
	if got, err := w.Next(); err != nil || got.Best.Point != 0 {
		t.Errorf("no run of it was seen to end: got %+v, error %v", got, err)
	}
}

func TestOldRunsCountForLess(t *testing.T) {
	t.Parallel()
	best := func(weight float64) int {
		old := repeat(4, whole(0, 8))
		for i := range old {
			old[i].Weight = weight
		}
		w := recurring.Whole{Space: cores(1, 4, 8), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}, Runs: join(repeat(4, whole(1, 10)), old)}
		got, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		return got.Best.Point
	}
	if best(1) != 0 || best(0.01) != 1 {
		t.Errorf("the best is %d by fresh runs, %d by old ones", best(1), best(0.01))
	}
}

// The promise of whole runs: with no true effect anywhere, hardly any job is ever given
// another setting for good.
func TestWithoutATrueEffectNothingBecomesTheBest(t *testing.T) {
	t.Parallel()
	wrong, looked := 0, 0
	for seed := range 200 {
		rng := rand.New(rand.NewPCG(1, uint64(seed)))
		w := recurring.Whole{Space: cores(3, 1, 2, 4, 8), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}}
		for n := range 16 {
			got, err := w.Next()
			if err != nil {
				t.Fatal(err)
			}
			point := got.Best.Point
			if got.Trying && n%2 == 1 {
				point = got.Next.Point
			}
			w.Runs = append(w.Runs, whole(point, 10*math.Exp(0.1*rng.NormFloat64())))
		}
		looked++
		if got, err := w.Next(); err != nil || got.Best.Point != w.Space.Own {
			wrong++
		}
	}
	if wrong > looked/20 {
		t.Errorf("%d of %d jobs ended with another setting that is no better", wrong, looked)
	}
	t.Logf("%d of %d", wrong, looked)
}

func TestTheNextReturnStaysInItsSpaceAndIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := recurring.Space{Knobs: []recurring.Knob{{Name: tuning.Cores, System: true}, {Name: "batch"}}}
		for b := range rapid.IntRange(1, 3).Draw(t, "batches") {
			for c := range rapid.IntRange(1, 4).Draw(t, "cores") {
				s.Points = append(s.Points, tuning.Settings{
					tuning.Cores: tuning.Number(float64(c + 1)), "batch": tuning.Number(math.Exp2(float64(b))),
				})
			}
		}
		point := rapid.IntRange(0, len(s.Points)-1)
		s.Own = point.Draw(t, "own")
		w := recurring.Whole{Space: s, Barred: make([]bool, len(s.Points)), Goal: rapid.SampledFrom([]recurring.Goal{
			{Measure: tuning.Measure{Objective: tuning.Energy}},
			{Measure: tuning.Measure{Objective: tuning.Time}},
			{Measure: tuning.Measure{Objective: tuning.EDP}},
			{Measure: tuning.Measure{Objective: tuning.Blend, Weight: .5}},
			{Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 1.1},
			{Cores: true, MaxSlowdown: 1.05},
		}).Draw(t, "goal")}
		for i := range w.Barred {
			w.Barred[i] = rapid.IntRange(0, 3).Draw(t, "barred") == 0
		}
		positive := rapid.SampledFrom([]float64{.01, .5, 1, 1.1, 2, 70, math.NaN(), 0, math.Inf(1)})
		measured := map[int]bool{}
		for range rapid.IntRange(0, 12).Draw(t, "runs") {
			r := recurring.Run{
				Weight: rapid.Float64Range(0, 1).Draw(t, "weight"), Epochs: rapid.Float64Range(0, 50).Draw(t, "epochs"),
				Place: rapid.SampledFrom([]string{"", "a"}).Draw(t, "place"),
			}
			for range rapid.IntRange(1, 3).Draw(t, "parts") {
				p := point.Draw(t, "point")
				measured[p] = true
				r.Parts = append(r.Parts, recurring.Part{
					Point: p, Epochs: rapid.Float64Range(0, 5).Draw(t, "measured"),
					Cost: tuning.Spent{Seconds: positive.Draw(t, "seconds"), Joules: positive.Draw(t, "joules")},
				})
			}
			w.Runs = append(w.Runs, r)
		}
		w.Failed = rapid.SliceOfN(point, 0, 2).Draw(t, "failed")
		got, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		again, _ := w.Next()
		if !cmp.Equal(got, again) {
			t.Fatalf("%+v and then %+v", got, again)
		}
		for _, p := range []int{got.Next.Point, got.Best.Point} {
			if p < 0 || p >= len(s.Points) || w.Barred[p] && p != s.Own {
				t.Fatalf("point %d is outside, or barred: %+v", p, got)
			}
			for _, f := range w.Failed {
				if p == f && p != s.Own {
					t.Fatalf("point %d failed: %+v", p, got)
				}
			}
		}
		if got.Best.Point != s.Own && !measured[got.Best.Point] || got.Trying && !got.Measured {
			t.Fatalf("what was not measured is the best, or tried before the owner's: %+v", got)
		}
		if !got.Trying && got.Next.Point != got.Best.Point {
			t.Fatalf("it is neither tried nor the best: %+v", got)
		}
	})
}

// returns plays a job whose runs cost what cost says; every second run may try. It
// returns the points tried, in order, and the best known in the end.
func returns(t *testing.T, w recurring.Whole, n int, cost func(point int) float64) (tried []int, best int) {
	t.Helper()
	for i := range n {
		got, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		point := got.Best.Point
		if got.Trying && i%2 == 1 {
			point = got.Next.Point
			tried = append(tried, point)
		}
		w.Runs = append(w.Runs, whole(point, cost(point)))
	}
	got, err := w.Next()
	if err != nil {
		t.Fatal(err)
	}
	return tried, got.Best.Point
}

func TestWholeRunsGoAlongALineByNoMoreThanAnOctave(t *testing.T) {
	t.Parallel()
	var values []float64
	for c := range 20 {
		values = append(values, float64(c+1))
	}
	for _, tc := range []struct {
		name string
		cost func(cores float64) float64
		best float64 // cores that the best known is at least as good as
		loss float64 // at most, of 40 runs, in runs
	}{
		{"a valley in the middle", func(c float64) float64 { return 100 + 3*math.Abs(c-9) }, 12, 1},
		{"the most is best", func(c float64) float64 { return 1000 / c }, 20, 2.5},
		{"the least is best", func(c float64) float64 { return 50 + 10*c }, 3, 0},
		{"nothing matters", func(float64) float64 { return 100 }, 20, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			space := cores(19, values...)
			tried, best := returns(t, recurring.Whole{Space: space, Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}}, 40, func(p int) float64 { return tc.cost(values[p]) })
			least, lost := values[19], 0.0
			for _, p := range tried {
				if values[p] < least/2 {
					t.Errorf("%g cores were tried when the least known was %g", values[p], least)
				}
				least = min(least, values[p])
				lost += tc.cost(values[p])/tc.cost(20) - 1
			}
			if tc.cost(values[best]) > tc.cost(tc.best) || lost > tc.loss {
				t.Errorf("after trying %v the best is %g cores; %g runs were lost", tried, values[best], lost)
			}
		})
	}
}

// A course with a failed run and no run that reached its end is left alone.
func TestHyperparametersThatFailedAreNotTriedUnderOtherCores(t *testing.T) {
	t.Parallel()
	space := recurring.Space{Knobs: []recurring.Knob{{Name: tuning.Cores, System: true}, {Name: "batch"}}}
	for _, b := range []float64{32, 64} {
		for _, c := range []float64{4, 8} {
			space.Points = append(space.Points, tuning.Settings{tuning.Cores: tuning.Number(c), "batch": tuning.Number(b)})
		}
	}
	space.Own = 1
	w := recurring.Whole{Space: space, Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}, Runs: repeat(40, whole(1, 10)), Failed: []int{3}}
	tried, _ := returns(t, w, 12, func(int) float64 { return 10 })
	for _, p := range tried {
		if p > 1 {
			t.Errorf("point %d was tried", p)
		}
	}
	if len(tried) == 0 {
		t.Error("nothing was tried")
	}
}
