package gauss_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/search/design"
	"pitchpipe/controller/search/gauss"
)

// certain is a prior without noise.
func certain() gauss.Prior {
	p := gauss.DefaultPrior()
	p.Noise, p.NoiseSD = 1e-8, 0.01
	return p
}

func drawPoints(t *rapid.T, least int) [][]float64 {
	n, axes := rapid.IntRange(least, 12).Draw(t, "n"), rapid.IntRange(1, 4).Draw(t, "axes")
	var out [][]float64
	for i := range n {
		x := make([]float64, axes)
		for a := range x {
			x[a] = float64(rapid.IntRange(0, 8).Draw(t, "x")) / 8
		}
		x[0] = float64(i) / float64(n) // no two are equal
		out = append(out, x)
	}
	return out
}

func TestTheProcessGoesThroughPointsWithoutNoiseAndIsSureThere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := gauss.Data{X: drawPoints(t, 3)}
		d.Words = make([]bool, len(d.X[0]))
		for range d.X {
			d.Y = append(d.Y, rapid.Float64Range(-2, 2).Draw(t, "y"))
		}
		m, err := gauss.Fit(d, certain())
		if err != nil {
			t.Fatal(err)
		}
		far := make([]float64, len(d.X[0]))
		for a := range far {
			far[a] = 5
		}
		_, away := m.Predict(far, 0)
		for i, x := range d.X {
			mean, sd := m.Predict(x, 0)
			if math.Abs(mean-d.Y[i]) > 1e-2 {
				t.Fatalf("at point %d the mean is %g, measured %g", i, mean, d.Y[i])
			}
			if sd > away/2 {
				t.Fatalf("at point %d the deviation is %g, far away %g", i, sd, away)
			}
		}
	})
}

func TestAnotherUnitOfTheOutcomeShiftsThePredictionAndNothingElse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		points := drawPoints(t, 5)
		unit := rapid.Float64Range(-10, 10).Draw(t, "log of the unit")
		plain := gauss.Data{X: points[:4], Words: make([]bool, len(points[0]))}
		other := plain
		for range plain.X {
			y := float64(rapid.IntRange(-8, 8).Draw(t, "y")) / 8
			plain.Y, other.Y = append(plain.Y, y), append(other.Y, y+unit)
		}
		a, errA := gauss.Fit(plain, gauss.DefaultPrior())
		b, errB := gauss.Fit(other, gauss.DefaultPrior())
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		for _, x := range points {
			m, sd := a.Predict(x, 0)
			n, other := b.Predict(x, 0)
			if math.Abs(n-m-unit) > 1e-3 || math.Abs(sd-other) > 1e-3 {
				t.Fatalf("at %v %g±%g, in another unit %g±%g", x, m, sd, n, other)
			}
		}
	})
}

func TestASearchNeverRepeatsItselfAndEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		points := drawPoints(t, 1)
		s := gauss.Search{Points: points, Words: make([]bool, len(points[0])), Prior: gauss.DefaultPrior()}
		s.Words[len(s.Words)-1] = rapid.Bool().Draw(t, "words")
		if rapid.Bool().Draw(t, "start") {
			s.Start = []int{len(points) - 1}
		}
		if rapid.Bool().Draw(t, "history") {
			for range points {
				s.Expected = append(s.Expected, rapid.Float64Range(-1, 1).Draw(t, "expected"))
			}
		}
		var seen []design.Seen
		tried := map[int]bool{}
		for range points {
			at, err := s.Next(seen)
			if err != nil || at < 0 || at >= len(points) || tried[at] {
				t.Fatalf("next %d of %d, tried %v: %v", at, len(points), tried, err)
			}
			tried[at] = true
			seen = append(seen, design.Seen{
				At: at, Log: rapid.SampledFrom([]float64{-1, 0, 0.5, 2}).Draw(t, "y"), Failed: rapid.IntRange(0, 3).Draw(t, "failed") == 0,
			})
		}
		if at, err := s.Next(seen); at != -1 || err != nil {
			t.Fatalf("all were measured and %d is next: %v", at, err)
		}
	})
}

func TestASearchFindsTheFootOfAValley(t *testing.T) {
	t.Parallel()
	var points [][]float64
	valley := func(x []float64) float64 {
		return 3*(x[0]-0.7)*(x[0]-0.7) + (x[1]-0.2)*(x[1]-0.2)
	}
	for i := range 11 {
		for j := range 11 {
			points = append(points, []float64{float64(i) / 10, float64(j) / 10})
		}
	}
	s := gauss.Search{Points: points, Words: []bool{false, false}, Prior: gauss.DefaultPrior(), Start: []int{0, 60, 120}}
	var seen []design.Seen
	for range 12 {
		at, err := s.Next(seen)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, design.Seen{At: at, Log: valley(points[at])})
	}
	if best := design.Least(seen); valley(points[best]) > 0.02 {
		t.Errorf("after 12 of 121 the best is %v", points[best])
	}
}

func TestWhatFailedIsKeptAwayFrom(t *testing.T) {
	t.Parallel()
	var points [][]float64
	for i := range 21 {
		points = append(points, []float64{float64(i) / 20})
	}
	s := gauss.Search{Points: points, Words: []bool{false}, Prior: gauss.DefaultPrior()}
	seen := []design.Seen{{At: 0, Log: 1}, {At: 5, Log: 0.5}, {At: 10, Log: 0.4}, {At: 20, Failed: true}, {At: 17, Failed: true}}
	at, err := s.Next(seen)
	if err != nil || at > 14 {
		t.Errorf("next %d: %v; want it away from 17 and 20, which failed", at, err)
	}
	seen = []design.Seen{{At: 0, Failed: true}}
	if at, err := s.Next(seen); err != nil || at < 5 {
		t.Errorf("next %d: %v; want it far from the only run, which failed", at, err)
	}
}

func TestHistorySaysWhereToBeginAndIsOverruled(t *testing.T) {
	t.Parallel()
	var points [][]float64
	for i := range 21 {
		points = append(points, []float64{float64(i) / 20})
	}
	var past []gauss.Past
	for scale := range 3 {
		p := gauss.Past{X: points}
		for _, x := range points {
			p.Y = append(p.Y, 10*float64(scale)+float64(scale+1)*math.Abs(x[0]-0.25))
		}
		past = append(past, p)
	}
	expected, err := gauss.History(past, points, []bool{false}, gauss.DefaultPrior(), 40)
	if err != nil {
		t.Fatal(err)
	}
	s := gauss.Search{Points: points, Words: []bool{false}, Prior: gauss.DefaultPrior(), Expected: expected}
	if at, err := s.Next(nil); err != nil || at < 4 || at > 6 {
		t.Errorf("the first is %d: %v; earlier jobs were best at 5", at, err)
	}
	var seen []design.Seen
	for range 8 {
		at, err := s.Next(seen)
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, design.Seen{At: at, Log: -2 * points[at][0]}) // this job is best at 20
	}
	if best := design.Least(seen); best != 20 {
		t.Errorf("the best found is %d, want 20 although history says 5", best)
	}
}

func TestNoHistoryIsNoExpectation(t *testing.T) {
	t.Parallel()
	points := [][]float64{{0}, {1}}
	for name, past := range map[string][]gauss.Past{
		"no job": nil, "one run": {{X: points[:1], Y: []float64{3}}}, "equal outcomes": {{X: points, Y: []float64{3, 3}}},
	} {
		if got, err := gauss.History(past, points, []bool{false}, gauss.DefaultPrior(), 9); got != nil || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestBadDataIsRefused(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]gauss.Data{
		"no points":            {},
		"a value is missing":   {X: [][]float64{{0}}, Words: []bool{false}},
		"a point is too long":  {X: [][]float64{{0, 1}}, Y: []float64{0}, Words: []bool{false}},
		"a value is no number": {X: [][]float64{{0}}, Y: []float64{math.NaN()}, Words: []bool{false}},
	} {
		if _, err := gauss.Fit(d, gauss.DefaultPrior()); !errors.Is(err, gauss.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExpectedImprovement(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name           string
		mean, sd, best float64
		want           float64
	}{
		{"without doubt it is the difference", 1, 0, 3, 2},
		{"without doubt and worse it is none", 3, 0, 1, 0},
		{"at the best it is the density at 0", 0, 1, 0, 1 / math.Sqrt(2*math.Pi)},
		{"one deviation worse", 1, 1, 0, 0.08331547058768},
	} {
		if got := gauss.ExpectedImprovement(tc.mean, tc.sd, tc.best); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", tc.name, got, tc.want)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	const candidates, axes = 400, 7
	points := make([][]float64, candidates)
	for i := range points {
		for range axes {
			points[i] = append(points[i], rng.Float64())
		}
	}
	s := gauss.Search{Points: points, Words: make([]bool, axes), Prior: gauss.DefaultPrior()}
	for _, n := range []int{10, 20, 50, 100, 200} {
		var seen []design.Seen
		for i := range n {
			seen = append(seen, design.Seen{At: i, Log: points[i][0] + points[i][1]*points[i][2] + 0.05*rng.NormFloat64()})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Next(seen); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
