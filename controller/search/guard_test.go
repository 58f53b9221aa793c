package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pitchpipe/controller/tuning"
)

// learned is a whole run of ten epochs under a batch.
func learned(batch, seconds, quality float64) tuning.PastRun {
	s := own().With("batch", tuning.Number(batch))
	return tuning.PastRun{
		Began: s, End: tuning.EndReached, Epochs: 10, Quality: &quality, Trials: []tuning.Trial{{Settings: s, Epochs: 9, Seconds: seconds}},
	}
}

// ends are runs under a batch that end with these qualities.
func ends(batch, seconds float64, qualities ...float64) []tuning.PastRun {
	var out []tuning.PastRun
	for _, q := range qualities {
		out = append(out, learned(batch, seconds, q))
	}
	return out
}

// studied is a job that learns with batches of 32 and may with 64, or with what the knobs say.
func studied(q *tuning.Quality, runs []tuning.PastRun, knobs ...tuning.Knob) Returning {
	if len(knobs) == 0 {
		knobs = []tuning.Knob{batch(32, 64)}
	}
	p := policy(knobs...)
	p.Quality, p.Budget.Returns = q, 12
	return Returning{Policy: p, Own: own(), Space: Space(p, own(), 5), Past: runs}
}

func TestHyperparametersChangeBetweenRunsAndByWhatTheseEndWith(t *testing.T) {
	t.Parallel()
	most := &tuning.Quality{Direction: "max", MaxLoss: 0.01}
	least := &tuning.Quality{Direction: "min", MaxLoss: 0.01}
	at := 0.85
	target := &tuning.Quality{Direction: "max", MaxLoss: 0.01, Target: &at}
	reached := func(epochs int, runs []tuning.PastRun) []tuning.PastRun {
		for i := range runs {
			runs[i].Reached = &tuning.Reached{Target: at, Epochs: epochs}
		}
		return runs
	}
	usual := ends(32, 10, .9, .9, .9, .9, .9, .9)
	silent := times(6, learned(64, 5, 0))
	for i := range silent {
		silent[i].Quality = nil
	}
	old := times(6, learned(64, 5, .9))
	for i := range old {
		old[i].Quality, old[i].End, old[i].Epochs, old[i].Began = nil, tuning.EndUnknown, 0, nil
	}
	for _, tc := range []struct {
		name   string
		r      Returning
		next   string
		reason tuning.Reason
		best   string
	}{
		{"without a guard they stay", studied(nil, usual), "", tuning.ReasonNoQualityGuard, ""},
		{"two runs tell no usual quality", studied(most, usual[:2]), "", tuning.ReasonWholeRuns, ""},
		{"three do", studied(most, usual[:3]), "64", "", ""},
		{"one run that is faster and as good is repeated", studied(most, slices.Concat(usual, ends(64, 5, .9))), "64", "", ""},
		{"several are a proof", studied(most, slices.Concat(usual, ends(64, 5, .9, .9, .9))), "", tuning.ReasonAlreadyBest, "64"},
		{"what ends worse is not tried again", studied(most, slices.Concat(usual, ends(64, 5, .745))), "", tuning.ReasonAlreadyBest, ""},
		{"nor is what lies beyond it", studied(most, slices.Concat(usual, ends(64, 5, .745)), batch(32, 64, 128)), "", tuning.ReasonAlreadyBest, ""},
		{"what lies beyond is, where seeds may explain it", studied(most, slices.Concat(ends(32, 10, .91, .89, .9), ends(64, 5, .88)), batch(32, 64, 128)), "128", "", ""},
		{
			"what was proven stays the best, whatever lies before it",
			studied(most, slices.Concat(usual, ends(64, 9, .745), ends(128, 5, .9, .9, .9)), batch(32, 64, 128)), "", tuning.ReasonAlreadyBest, "128",
		},
		{"what lies on the other side is", studied(most, slices.Concat(usual, ends(64, 5, .745)), batch(16, 32, 64)), "16", "", ""},
		{"what may end worse is tried again", studied(most, slices.Concat(ends(32, 10, .91, .89, .9), ends(64, 5, .91, .89))), "64", "", ""},
		{
			"what the seeds make doubtful is not the best, however often it was faster",
			studied(most, slices.Concat(ends(32, 10, .94, .86, .9, .88), ends(64, 5, .93, .87, .91, .86, .92, .91))), "64", "", "",
		},
		{
			"what is as good and no faster is left", studied(most, slices.Concat(usual, ends(64, 10.5, .9, .9, .9))), "", tuning.ReasonAlreadyBest, "",
		},
		{"a loss that is smaller is better", studied(least, slices.Concat(ends(32, 10, .4, .4, .4, .4, .4, .4), ends(64, 5, .3, .3, .3))), "", tuning.ReasonAlreadyBest, "64"},
		{"a loss that is larger is worse", studied(least, slices.Concat(ends(32, 10, .4, .4, .4), ends(64, 5, .5, .5, .5))), "", tuning.ReasonAlreadyBest, ""},
		{"a quality below zero loses downwards", studied(most, slices.Concat(ends(32, 10, -2, -2, -2), ends(64, 5, -2.1, -2.1, -2.1))), "", tuning.ReasonAlreadyBest, ""},
		{"a quality that was not seen is no proof", studied(most, slices.Concat(usual, silent)), "64", "", ""},
		{"nor are runs of an older version", studied(most, slices.Concat(usual, old)), "64", "", ""},
		{
			"with a target the run to it counts, not the epoch",
			studied(target, slices.Concat(reached(9, ends(32, 10, .9, .9, .9, .9, .9, .9)), reached(4, ends(64, 12, .9, .9, .9)))), "", tuning.ReasonAlreadyBest, "64",
		},
		{
			"nor the run to its end",
			studied(target, slices.Concat(reached(2, ends(32, 10, .9, .9, .9, .9, .9, .9)), reached(9, ends(64, 5, .9, .9, .9)))), "", tuning.ReasonAlreadyBest, "",
		},
		{
			"what never reaches it is left",
			studied(target, slices.Concat(reached(9, ends(32, 10, .9, .9, .9)), reached(0, ends(64, 1, .9, .9, .9)))), "", tuning.ReasonAlreadyBest, "",
		},
		{"as long as the owner's runs do not reach it nothing is tried", studied(target, reached(0, ends(32, 10, .8, .8, .8))), "", tuning.ReasonWholeRuns, ""},
		{"another target was reached by other runs", studied(target, ends(32, 10, .9, .9, .9)), "", tuning.ReasonWholeRuns, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := tc.r.Propose()
			best := ""
			if got.Best != nil {
				best = got.Best.Settings["batch"].String()
			}
			if got.Next["batch"].String() != tc.next || got.Reason != tc.reason || best != tc.best {
				t.Errorf("got %+v (best %s), want next %q, reason %q, best %q", got, best, tc.next, tc.reason, tc.best)
			}
			if tc.r.Policy.Quality != nil && got.EndsNeeded != ownEnds {
				t.Errorf("%d of %d runs of its owner's: want it to say how many are needed", got.Ends, got.EndsNeeded)
			}
		})
	}
}

func TestWhatBreaksTheGuardIsKnownBeyondDoubt(t *testing.T) {
	t.Parallel()
	most := &tuning.Quality{Direction: "max", MaxLoss: 0.01}
	at := func(n float64) tuning.Settings { return own().With("batch", tuning.Number(n)) }
	for _, tc := range []struct {
		name string
		runs []tuning.PastRun
		s    tuning.Settings
		want bool
	}{
		{"0.745 where 0.894 is usual", slices.Concat(ends(32, 10, .894, .893, .895), ends(64, 5, .745)), at(64), true},
		{"the owner's own never do", slices.Concat(ends(32, 10, .894, .893, .2), ends(64, 5, .745)), at(32), false},
		{"a loss that seeds may explain", slices.Concat(ends(32, 10, .91, .88, .89), ends(64, 5, .87)), at(64), false},
		{"what was never run", ends(32, 10, .894, .893, .895), at(64), false},
		{"nothing to compare with", ends(64, 5, .745, .745), at(64), false},
		{"as good", slices.Concat(ends(32, 10, .894, .893, .895), ends(64, 5, .894)), at(64), false},
	} {
		if got := studied(most, tc.runs).Breaks(tc.s); got != tc.want {
			t.Errorf("%s: %t, want %t", tc.name, got, tc.want)
		}
	}
}

// A batch that ends just outside of the guard is called good in no more than one of twenty
// kinds of job, and one of two such batches in no more.
func TestWhatEndsOutsideOfTheGuardIsRarelyCalledGood(t *testing.T) {
	t.Parallel()
	const kinds = 4000
	for name, candidates := range map[string][]float64{"one": {64}, "three": {64, 128, 256}} {
		for _, sd := range []float64{.002, .01} {
			rng := rand.New(rand.NewPCG(7, uint64(len(candidates))))
			draw := func(mean float64) float64 { return mean + sd*rng.NormFloat64() }
			wrong := 0
			for range kinds {
				g := guard{quality: tuning.Quality{Direction: "max", MaxLoss: .01}, own: "32", ends: map[string][]float64{}}
				for range 4 {
					g.ends["32"] = append(g.ends["32"], draw(.9))
				}
				called := false
				for _, c := range candidates {
					key := tuning.Number(c).String()
					for range 3 {
						g.ends[key] = append(g.ends[key], draw(.9*.99))
					}
				}
				for _, c := range candidates {
					called = called || g.of(tuning.Number(c).String()).kept
				}
				if called {
					wrong++
				}
			}
			if wrong > kinds*6/100 {
				t.Errorf("%s, runs that differ by %g: %d of %d kinds got a batch that is not good enough", name, sd, wrong, kinds)
			}
			t.Logf("%s, %g: %d of %d", name, sd, wrong, kinds)
		}
	}
}

// recurring plays twelve runs of a kind whose epochs get shorter and whose quality gets worse by
// these logarithms for each doubling of the batch: what is best in the end.
func returns(rng *rand.Rand, saved, lost, sd float64) float64 {
	r := studied(&tuning.Quality{Direction: "max", MaxLoss: .01}, nil, batch(32, 64, 128, 256))
	r.Policy.Budget.Returns = 6
	for range 12 {
		at, got := 32.0, r.Propose()
		trying := len(got.Next) > 0 && 2*(got.Spent+1) <= got.Runs+1 // a site's usual share
		switch {
		case trying:
			at = got.Next["batch"].Float()
		case got.Best != nil:
			at = got.Best.Settings["batch"].Float()
		}
		doublings := math.Log2(at / 32)
		run := learned(at, 10*math.Exp(.03*rng.NormFloat64()-saved*doublings), .9*math.Exp(sd*rng.NormFloat64()-lost*doublings))
		run.Trying = trying
		r.Past = append(r.Past, run)
	}
	if got := r.Propose(); got.Best != nil {
		return got.Best.Settings["batch"].Float()
	}
	return 32
}

func TestASafeBatchIsUsedWithinTwelveRunsAndAHarmfulOneIsNot(t *testing.T) {
	t.Parallel()
	const kinds = 100
	rng := rand.New(rand.NewPCG(1, 2))
	used, harmed := 0, 0
	for range kinds {
		if returns(rng, .15, .0003, .003) > 32 {
			used++
		}
		if returns(rng, .15, .012, .003) > 32 {
			harmed++
		}
	}
	if used < kinds*8/10 || harmed > kinds*2/100 {
		t.Errorf("of %d kinds each, %d use a batch that is safe, and %d one that is not", kinds, used, harmed)
	}
	t.Logf("%d and %d", used, harmed)
}
