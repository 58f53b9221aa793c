package verify

import (
	"math"
	"slices"
	"testing"

	"pitchpipe/controller/tuning"
)

// pair makes two jobs of n epochs whose seconds have the given ratio.
func pair(n int, ratio float64) Pair {
	return Pair{Untuned: epochs(1, around(n, 10, .02)...), Tuned: epochs(1, around(n, 10*ratio, .02)...)}
}

func ten(p Pair) []Pair { return slices.Repeat([]Pair{p}, 10) }

func TestComparePairsOfJobs(t *testing.T) {
	t.Parallel()
	guard := &tuning.Quality{Direction: "max", MaxLoss: .01}
	tests := []struct {
		name    string
		in      Input
		verdict tuning.Verdict
		reason  tuning.Reason
	}{
		{
			"one pair is never conclusive",
			Input{Pairs: []Pair{pair(100, .1)}},
			tuning.Inconclusive, tuning.ReasonInconclusive,
		},
		{
			"ten pairs that halve the time are conclusive",
			Input{Pairs: ten(pair(10, .5))},
			tuning.Improved, tuning.ReasonImproved,
		},
		{
			"pairs that differ by 3 % to either side are not claimed as different",
			Input{Pairs: append(ten(pair(50, .97)), ten(pair(50, 1.03))...)},
			tuning.Inconclusive, tuning.ReasonInconclusive,
		},
		{
			"no effect is neutral once the interval is within the margin",
			Input{Pairs: append(ten(pair(9, 1)), ten(pair(9, 1.001))...)},
			tuning.Neutral, tuning.ReasonNeutral,
		},
		{
			"an effect below the margin is neutral though it is clear of zero",
			Input{Pairs: append(ten(pair(9, .99)), ten(pair(9, .991))...)},
			tuning.Neutral, tuning.ReasonNeutral,
		},
		{
			"many pairs show a regression",
			Input{Pairs: append(ten(pair(9, 1.3)), pair(9, 1.28), pair(9, 1.33))},
			tuning.Regressed, tuning.ReasonRegressed,
		},
		{
			"what tuning cost is charged to the tuned job",
			Input{Pairs: ten(func() Pair { p := pair(10, .5); p.ChargeSeconds = 60; return p }())},
			tuning.Regressed, tuning.ReasonRegressed,
		},
		{
			"the charge does not count as slower epochs",
			Input{Pairs: ten(func() Pair { p := pair(10, .9); p.ChargeSeconds = 900; return p }()), MaxSlowdown: 1.1},
			tuning.Regressed, tuning.ReasonRegressed,
		},
		{
			"epochs that only one job did are not compared",
			Input{Pairs: []Pair{{Untuned: epochs(1, around(8, 10, .02)...), Tuned: epochs(9, around(8, 5, .02)...)}}},
			tuning.Inconclusive, tuning.ReasonNoSamples,
		},
		{
			"quality is compared at equal epochs",
			Input{Quality: guard, Pairs: ten(Pair{
				Untuned: graded(epochs(1, around(6, 10, .02)...), .5, .6, .7, .8, .9, .95),
				Tuned:   graded(epochs(1, around(4, 5, .02)...), .5, .6, .7, .8),
			})},
			tuning.Improved, tuning.ReasonImproved,
		},
		{
			"a lower quality at the last equal epochs is a regression",
			Input{Quality: guard, Pairs: ten(Pair{
				Untuned: graded(epochs(1, around(6, 10, .02)...), .5, .6, .7, .8, .9, .95),
				Tuned:   graded(epochs(1, around(6, 5, .02)...), .5, .6, .65, .7, .75, .8),
			})},
			tuning.Regressed, tuning.ReasonQualityLost,
		},
		{
			"a quality that is better when smaller is lost when it is larger",
			Input{Quality: &tuning.Quality{Direction: "min", MaxLoss: .01}, Pairs: ten(Pair{
				Untuned: graded(epochs(1, around(6, 10, .02)...), .2),
				Tuned:   graded(epochs(1, around(6, 5, .02)...), .25),
			})},
			tuning.Regressed, tuning.ReasonQualityLost,
		},
		{
			"without any quality measured the guard is silent",
			Input{Quality: guard, Pairs: ten(pair(10, .5))},
			tuning.Improved, tuning.ReasonImproved,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Compare(tt.in)
			if got.Verdict != tt.verdict || got.Reason != tt.reason {
				t.Errorf("Compare = %s (%s) %.3f [%.3f, %.3f], want %s (%s)",
					got.Verdict, got.Reason, got.LogRatio, got.Low, got.High, tt.verdict, tt.reason)
			}
		})
	}
}

func TestAPollutedEpochIsDroppedOnBothSides(t *testing.T) {
	t.Parallel()
	p := pair(6, .5)
	p.Untuned[2].Polluted = true
	p.Tuned[4].Polluted = true
	p.Tuned[4].End = p.Tuned[4].End.Add(1e12)
	r := measure{Measure: tuning.Measure{Objective: tuning.Time}}.ratios(p)
	if len(r) != 4 {
		t.Fatalf("%d ratios, want 4", len(r))
	}
	for _, x := range r {
		if math.Abs(x-math.Log(.5)) > 1e-9 {
			t.Errorf("ratio %g, want ln 0.5", x)
		}
	}
}

func TestOfAnEpochDoneTwiceTheLastAttemptCounts(t *testing.T) {
	t.Parallel()
	first := epochs(1, 10, 10)
	again := epochs(2, 7)
	again[0].Attempt = 2
	p := Pair{Tuned: append(again, first...), Untuned: append(epochs(1, 1, 1), again...)}
	var got []int
	for tuned, untuned := range matching(p) {
		got = append(got, tuned.Number, tuned.Attempt, untuned.Number, untuned.Attempt)
	}
	if want := []int{1, 1, 1, 1, 2, 2, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("numbers and attempts %v, want %v: epoch 1 of attempt 1 and epoch 2 of attempt 2", got, want)
	}
}

func TestJoulesOfPairsAreCharged(t *testing.T) {
	t.Parallel()
	p := pair(10, 1)
	powered(p.Untuned, 100, "rapl")
	powered(p.Tuned, 50, "rapl")
	p.ChargeJoules = tuning.Joules(tuning.Sum(p.Tuned, func(e tuning.Epoch) float64 { return float64(*e.Joules) }))
	got := Compare(Input{Pairs: []Pair{p}, Measure: tuning.Measure{Objective: tuning.Energy}})
	if math.Abs(got.LogRatio) > 1e-9 {
		t.Errorf("half the joules plus as much for tuning: log ratio %g, want 0", got.LogRatio)
	}
	if got.Pairs != 1 {
		t.Errorf("pairs %d, want 1", got.Pairs)
	}
}

func TestAPairWhoseChargeIsNotKnownSaysNothingOfJoules(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Pair){
		"not measured":      func(p *Pair) { p.JoulesUnknown = true },
		"by another source": func(p *Pair) { p.ChargeJoules, p.ChargeSource = 100, tuning.Modelled },
	} {
		p := pair(10, .5)
		powered(p.Untuned, 100, "rapl")
		powered(p.Tuned, 100, "rapl")
		spoil(&p)
		for objective, pairs := range map[tuning.Objective]int{tuning.Time: 1, tuning.Energy: 0, tuning.EDP: 0} {
			if got := Compare(Input{Pairs: []Pair{p}, Measure: tuning.Measure{Objective: objective}}); got.Pairs != pairs {
				t.Errorf("%s: %s was compared on %d pairs, want %d", name, objective, got.Pairs, pairs)
			}
		}
	}
}
