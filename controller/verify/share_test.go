package verify

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

// share draws pairs of jobs of one kind; chance chose one of each to stay untuned:
// their inputs differ as the size function says, their runs and epochs by a few
// percent, and tuning has the given effect.
func share(rng *rand.Rand, pairs int, size func(*rand.Rand) float64, effect float64) []Pair {
	job := func(factor float64) []tuning.Epoch {
		factor *= size(rng) * math.Exp(.03*rng.NormFloat64())
		seconds := make([]float64, 6)
		for i := range seconds {
			seconds[i] = 10 * factor * math.Exp(.05*rng.NormFloat64())
		}
		return epochs(1, seconds...)
	}
	out := make([]Pair, pairs)
	for i := range out {
		out[i] = Pair{Tuned: job(effect), Untuned: job(1)}
	}
	return out
}

func inputs() map[string]func(*rand.Rand) float64 {
	return map[string]func(*rand.Rand) float64{
		"all inputs are alike":             func(*rand.Rand) float64 { return 1 },
		"inputs of any size":               func(r *rand.Rand) float64 { return math.Exp(.5 * r.NormFloat64()) },
		"two inputs, one ten times so big": func(r *rand.Rand) float64 { return 1 + 9*float64(r.IntN(2)) },
		"one input in ten is ten times so big": func(r *rand.Rand) float64 {
			if r.IntN(10) == 0 {
				return 10
			}
			return 1
		},
	}
}

func TestAReportThatIsLookedAtAfterEveryPairRarelyClaimsASavingThatIsNone(t *testing.T) {
	t.Parallel()
	const looks = 20
	for name, size := range inputs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(21, uint64(len(name))))
			wrong, n := 0, sequences()/16
			for range n {
				pairs := share(rng, looks, size, 1)
				for k := 1; k <= looks; k++ {
					o := Compare(Input{Pairs: pairs[:k]})
					if o.Verdict == tuning.Improved || o.Verdict == tuning.Regressed {
						wrong++
						break
					}
				}
			}
			t.Logf("%d of %d", wrong, n)
			if wrong > allowed(n, 0.05) {
				t.Errorf("%d of %d reports made a false claim, want at most %d", wrong, n, allowed(n, 0.05))
			}
		})
	}
}

func TestAReportFindsASavingThatIsThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size  func(*rand.Rand) float64
		pairs int
		least int // of 100 reports
	}{
		"a third less on equal inputs shows in eight pairs":        {inputs()["all inputs are alike"], 8, 95},
		"a third less on inputs of any size takes thirty and more": {inputs()["inputs of any size"], 60, 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(5, uint64(c.pairs)))
			found := 0
			for range 100 {
				o := Compare(Input{Pairs: share(rng, c.pairs, c.size, 2./3)})
				if o.Verdict == tuning.Improved && o.Low < math.Log(2./3) && math.Log(2./3) < o.High {
					found++
				}
			}
			t.Logf("%d of 100", found)
			if found < c.least {
				t.Errorf("found in %d of 100 reports, want %d", found, c.least)
			}
		})
	}
}

func TestPairsAreJudgedByTheWorkOfBothJobsAlone(t *testing.T) {
	t.Parallel()
	base := func() []Pair { return share(rand.New(rand.NewPCG(1, 1)), 8, inputs()["all inputs are alike"], .7) }
	want := Compare(Input{Pairs: base()})
	if want.Verdict != tuning.Improved || want.Pairs != 8 {
		t.Fatalf("%+v, want improved by 8 pairs", want)
	}
	for name, change := range map[string]func(p *Pair){
		"a job that went on for longer": func(p *Pair) { p.Untuned = append(p.Untuned, epochs(7, 500, 500)...) },
		"a warm-up after a restart": func(p *Pair) {
			p.Tuned = append(p.Tuned, marked(epochs(7, 500), func(e *tuning.Epoch) { e.Warmup = true })...)
		},
		"a probe on epochs that both did": func(p *Pair) {
			p.Tuned, p.Untuned = append(p.Tuned, marked(epochs(7, 500), func(e *tuning.Epoch) { e.Warmup = true })...), append(p.Untuned, epochs(7, 10)...)
		},
		"an epoch that others disturbed": func(p *Pair) {
			p.Tuned, p.Untuned = append(p.Tuned, epochs(7, 10)...), append(p.Untuned, marked(epochs(7, 500), func(e *tuning.Epoch) { e.Polluted = true })...)
		},
		"an epoch that was done once before": func(p *Pair) {
			p.Tuned = append(marked(epochs(2, 500), func(e *tuning.Epoch) { e.Attempt = 0 }), p.Tuned...)
		},
	} {
		t.Run(name+" changes nothing", func(t *testing.T) {
			t.Parallel()
			pairs := base()
			for i := range pairs {
				change(&pairs[i])
			}
			if got := Compare(Input{Pairs: pairs}); got.LogRatio != want.LogRatio || got.High != want.High {
				t.Errorf("%.4f up to %.4f, want %.4f up to %.4f", got.LogRatio, got.High, want.LogRatio, want.High)
			}
		})
	}
}

// The average over all signs of the same values is what a fair bet is worth: one.
func TestABetOnSymmetryIsFair(t *testing.T) {
	t.Parallel()
	values := []float64{.001, .03, .2, 1.5, 4}
	for _, delta := range []float64{0, .7} {
		sum := 0.0
		for signs := range 1 << len(values) {
			xs := make([]float64, len(values))
			for i, v := range values {
				xs[i] = delta + v*float64(1-2*(signs>>i&1))
			}
			sum += math.Exp(wealth(xs, delta)) / float64(int(1)<<len(values))
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("around %g the bet is worth %g, want 1", delta, sum)
		}
	}
}

func TestTheBoundOfSymmetryIsWhereTheBetReachesItsLimit(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(8, 8))
	for range 50 {
		xs := make([]float64, 9+rng.IntN(40))
		for i := range xs {
			xs[i] = 3 + rng.NormFloat64()*math.Exp(2*rng.NormFloat64())
		}
		low := lowest(xs, .025)
		if math.IsInf(low, 0) {
			t.Fatalf("no bound from %d values", len(xs))
		}
		for _, d := range []float64{1e-6, .1, 1} {
			if inside, outside := wealth(xs, low+d), wealth(xs, low-d); inside >= -math.Log(.025) || outside < -math.Log(.025)-1e-9 {
				t.Fatalf("%g above the bound the bet is at %g, below at %g, want %g between", d, inside, outside, -math.Log(.025))
			}
		}
	}
	if low := lowest([]float64{1, 1, 1, 1, 1, 1, 1}, .025); !math.IsInf(low, -1) {
		t.Errorf("seven values that agree bound the centre by %g, want nothing", low)
	}
	if e := symmetricPairs(nil, .05); e.n != 0 || !math.IsInf(e.half, 1) {
		t.Errorf("%+v without pairs", e)
	}
}

func TestTheBoundIsTheOneThatHalvingFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(-3, 3), 8, 60).Draw(t, "xs")
		alpha := rapid.SampledFrom([]float64{.005, .0125, .025, .05}).Draw(t, "alpha")
		got := lowest(xs, alpha)
		if math.IsInf(got, -1) {
			return // too few values for so small an error
		}
		below, above := got-10, got+10
		for range 60 {
			if middle := (below + above) / 2; wealth(xs, middle) >= -math.Log(alpha) {
				below = middle
			} else {
				above = middle
			}
		}
		if math.Abs(got-below) > 1e-8 || wealth(xs, got) < -math.Log(alpha) {
			t.Fatalf("%.12f, halving finds %.12f", got, below)
		}
	})
}
