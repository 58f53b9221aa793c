package propose

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

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
		d := data{x: drawPoints(t, 3)}
		for range d.x {
			d.y = append(d.y, rapid.Float64Range(-2, 2).Draw(t, "y"))
		}
		m, err := of(d.x).fit(d, 1e-8, 0.01, fine)
		if err != nil {
			t.Fatal(err)
		}
		far := make([]float64, len(d.x[0]))
		for a := range far {
			far[a] = 5
		}
		_, away := m.predict(far, nil)
		for i, x := range d.x {
			mean, sd := m.predict(x, nil)
			if math.Abs(mean-d.y[i]) > 1e-2 {
				t.Fatalf("at point %d the mean is %g, measured %g", i, mean, d.y[i])
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
		plain := data{x: points[:4]}
		other := plain
		for range plain.x {
			y := float64(rapid.IntRange(-8, 8).Draw(t, "y")) / 8
			plain.y, other.y = append(plain.y, y), append(other.y, y+unit)
		}
		a, errA := of(points).fit(plain, usualNoise, noiseSD, fine)
		b, errB := of(points).fit(other, usualNoise, noiseSD, fine)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		for _, x := range points {
			m, sd := a.predict(x, nil)
			n, other := b.predict(x, nil)
			if math.Abs(n-m-unit) > 1e-3 || math.Abs(sd-other) > 1e-3 {
				t.Fatalf("at %v %g±%g, in another unit %g±%g", x, m, sd, n, other)
			}
		}
	})
}

// of is a space of numbers with as many axes as the points.
func of(points [][]float64) *Candidates { return &Candidates{Axes: make([]Axis, len(points[0]))} }

func TestBadDataIsRefused(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]data{
		"no points":            {},
		"a value is missing":   {x: [][]float64{{0}}},
		"a point is too long":  {x: [][]float64{{0, 1}}, y: []float64{0}},
		"a value is no number": {x: [][]float64{{0}}, y: []float64{math.NaN()}},
	} {
		if _, err := of([][]float64{{0}}).fit(d, usualNoise, noiseSD, fine); !errors.Is(err, ErrInput) {
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
		{"at the best it is the density at 0", 0, 1, 0, 1 / math.Sqrt(2*math.Pi)},
		{"one deviation worse", 1, 1, 0, 0.08331547058768},
	} {
		if got := math.Exp(logImprovement(tc.mean, tc.sd, tc.best)); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", tc.name, got, tc.want)
		}
	}
	if hopeless, worse := logImprovement(3, 0, 1), logImprovement(4, 0, 1); !(hopeless > worse) || math.IsInf(worse, -1) {
		t.Errorf("two without hope are not ordered: %g and %g", hopeless, worse)
	}
}

func BenchmarkNext(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	const candidates, axes = 400, 7
	c := &Candidates{Axes: make([]Axis, axes), Points: make([][]float64, candidates)}
	for i := range c.Points {
		for range axes {
			c.Points[i] = append(c.Points[i], rng.Float64())
		}
	}
	for _, n := range []int{10, 20, 50} {
		var trials []Trial
		for i := range n {
			p := c.Points[i]
			trials = append(trials, Trial{At: i, Losses: []float64{p[0] + p[1]*p[2] + 0.05*rng.NormFloat64()}})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := c.improve(nil).Next(trials); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkGuide(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	const candidates, axes = 1024, 7
	c := &Candidates{Axes: make([]Axis, axes), Points: make([][]float64, candidates)}
	for i := range c.Points {
		for range axes {
			c.Points[i] = append(c.Points[i], rng.Float64())
		}
	}
	for _, n := range []int{10, 20, 40, 1000} {
		var trials []Trial
		for i := range n {
			p := c.Points[i]
			trials = append(trials, Trial{At: i, Losses: []float64{p[0] + p[1]*p[2] + 0.05*rng.NormFloat64()}})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Guide(nil).Next(trials); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
