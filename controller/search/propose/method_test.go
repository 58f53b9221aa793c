package propose

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

func luck(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// square are n times n candidates over two knobs.
func square(n int) *Candidates {
	var out []tuning.Settings
	for i := range n {
		for j := range n {
			out = append(out, tuning.Settings{"x": tuning.Number(float64(i)), "y": tuning.Number(float64(j))})
		}
	}
	return Of(out)
}

// all are the methods over the candidates, each with its own luck.
func all(c *Candidates, seed uint64) map[string]Method {
	expected := make([]float64, len(c.Points))
	for i := range expected {
		expected[i] = float64(i % 3)
	}
	return map[string]Method{
		"random": c.Random(luck(seed)), "grid": c.Grid(5, luck(seed)), "latin hypercube": c.LatinHypercube(5, luck(seed)),
		"gaussian process": c.Gaussian(nil, luck(seed)), "warm": c.Gaussian(expected, luck(seed)),
		"in turns": Turns{One: c.Gaussian(nil, luck(seed)), Other: c.Random(luck(seed)), Every: 2},
		"guided":   Then{First: c.Guide(nil), Rest: c.Random(luck(seed))},
		"recalled": Then{First: c.Guide([][]float64{expected, expected}), Rest: c.Random(luck(seed))},
	}
}

// drawCandidates are different settings of one to four knobs, the first of numbers.
func drawCandidates(t *rapid.T) *Candidates {
	var out []tuning.Settings
	n, words := rapid.IntRange(1, 12).Draw(t, "n"), rapid.Bool().Draw(t, "words")
	axes := rapid.IntRange(0, 3).Draw(t, "axes")
	for i := range n {
		s := tuning.Settings{"first": tuning.Number(float64(i))}
		for a := range axes {
			s[string(rune('a'+a))] = tuning.Number(float64(rapid.IntRange(0, 8).Draw(t, "x")))
		}
		if words {
			s["word"] = tuning.Word(rapid.SampledFrom([]string{"one", "two"}).Draw(t, "word"))
		}
		out = append(out, s)
	}
	return Of(out)
}

func TestEveryMethodRunsEachCandidateToItsEndOnceAndEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCandidates(t)
		seed := rapid.Uint64().Draw(t, "seed")
		for name, m := range all(c, seed) {
			again := all(c, seed)[name]
			var trials []Trial
			for range c.Points {
				at, err := m.Next(trials)
				if same, _ := again.Next(trials); err != nil || same != at {
					t.Fatalf("%s: next %d, and %d when asked again: %v", name, at, same, err)
				}
				if at < 0 || at >= len(c.Points) {
					t.Fatalf("%s: next %d of %d", name, at, len(c.Points))
				}
				if slices.ContainsFunc(trials, func(t Trial) bool { return t.At == at }) {
					t.Fatalf("%s: %d is next, which began before", name, at)
				}
				one := Trial{At: at, Running: rapid.Bool().Draw(t, "running")}
				if !one.Running {
					one.Losses = rapid.SliceOfN(rapid.SampledFrom([]float64{-1, 0, 0.5, 2, math.NaN()}), 1, 3).Draw(t, "losses")
				}
				trials = append(trials, one)
			}
			if at, err := m.Next(trials); at != -1 || err != nil || len(trials) != len(c.Points) {
				t.Fatalf("%s: %d of %d began and %d is next: %v", name, len(trials), len(c.Points), at, err)
			}
		}
	})
}

// play runs n trials and returns the candidate of the least loss.
func play(t *testing.T, m Method, n int, loss func(at int) float64) (best int, trials []Trial) {
	t.Helper()
	for range n {
		at, err := m.Next(trials)
		if err != nil {
			t.Fatal(err)
		}
		trials = append(trials, Trial{At: at, Losses: []float64{loss(at)}})
		if loss(at) < loss(trials[best].At) {
			best = len(trials) - 1
		}
	}
	return trials[best].At, trials
}

func TestASearchThatLearnsFindsTheFootOfAValley(t *testing.T) {
	t.Parallel()
	c := square(11)
	valley := func(at int) float64 {
		x, y := c.Points[at][0], c.Points[at][1]
		return 3*(x-0.7)*(x-0.7) + (y-0.2)*(y-0.2)
	}
	if best, _ := play(t, c.Gaussian(nil, luck(1)), 12, valley); valley(best) > 0.02 {
		t.Errorf("after 12 of 121 the best is %v", c.Points[best])
	}
}

func TestWhatFailedIsKeptAwayFrom(t *testing.T) {
	t.Parallel()
	var settings []tuning.Settings
	for i := range 21 {
		settings = append(settings, tuning.Settings{"x": tuning.Number(float64(i))})
	}
	m := Of(settings).improve(nil)
	fail := math.NaN()
	for _, tc := range []struct {
		name      string
		trials    []Trial
		low, high int
	}{
		{
			"away from 17 and 20, which failed",
			[]Trial{{At: 0, Losses: []float64{1}}, {At: 5, Losses: []float64{0.5}}, {At: 10, Losses: []float64{0.4}}, {At: 20, Losses: []float64{fail}}, {At: 17, Losses: []float64{fail}}},
			0, 14,
		},
		{"far from the only run, which failed", []Trial{{At: 0, Losses: []float64{fail}}}, 5, 20},
	} {
		if at, err := m.Next(tc.trials); err != nil || at < tc.low || at > tc.high {
			t.Errorf("%s: next %d: %v", tc.name, at, err)
		}
	}
}

func TestHistorySaysWhereToBeginAndIsOverruled(t *testing.T) {
	t.Parallel()
	var settings []tuning.Settings
	for i := range 21 {
		settings = append(settings, tuning.Settings{"x": tuning.Number(float64(i))})
	}
	c := Of(settings)
	var past []Past
	for scale := range 3 {
		p := Past{Settings: settings}
		for _, x := range c.Points {
			p.Losses = append(p.Losses, 10*float64(scale)+float64(scale+1)*math.Abs(x[0]-0.25))
		}
		past = append(past, p)
	}
	expected, err := c.History(past)
	if err != nil {
		t.Fatal(err)
	}
	m := c.improve([][]float64{expected})
	if at, err := m.Next(nil); err != nil || at < 4 || at > 6 {
		t.Errorf("the first is %d: %v; earlier jobs were best at 5", at, err)
	}
	best, _ := play(t, m, 8, func(at int) float64 { return -2 * c.Points[at][0] }) // this job is best at 20
	if best != 20 {
		t.Errorf("the best found is %d, want 20 although history says 5", best)
	}
}

func TestNoHistoryIsNoExpectation(t *testing.T) {
	t.Parallel()
	settings := []tuning.Settings{{"x": tuning.Number(0)}, {"x": tuning.Number(1)}}
	for name, past := range map[string][]Past{
		"no job": nil, "one run": {{Settings: settings[:1], Losses: []float64{3}}}, "equal outcomes": {{Settings: settings, Losses: []float64{3, 3}}},
	} {
		if got, err := Of(settings).History(past); got != nil || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
