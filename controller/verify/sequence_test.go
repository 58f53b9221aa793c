package verify

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

// noises are the shapes of noise that the error is held under, each with
// standard deviation 1 (t with 3 degrees of freedom has √3, and skewed is a
// centred exponential, as epochs that are only ever slowed down).
func noises() map[string]func(*rand.Rand) func() float64 {
	return map[string]func(*rand.Rand) func() float64{
		"normal": func(r *rand.Rand) func() float64 { return r.NormFloat64 },
		"t3": func(r *rand.Rand) func() float64 {
			d := distuv.StudentsT{Mu: 0, Sigma: 1 / math.Sqrt(3), Nu: 3, Src: r}
			return d.Rand
		},
		"skewed": func(r *rand.Rand) func() float64 { return func() float64 { return r.ExpFloat64() - 1 } },
	}
}

// looks is when a watcher looks: after each of the first epochs, then more
// rarely, up to 200.
func looks() []int {
	var out []int
	for n := 1; n <= 200; n += 1 + n/8 {
		out = append(out, n)
	}
	return append(out, 200)
}

func sequences() int {
	if testing.Short() || raced {
		return 400
	}
	return 1000
}

// allowed is how many false claims n sequences may show at an error of alpha:
// two and a half binomial standard deviations above what is expected.
func allowed(n int, alpha float64) int {
	return int(float64(n)*alpha + 2.5*math.Sqrt(float64(n)*alpha*(1-alpha)))
}

func TestWhoeverStopsAtTheFirstClearAnswerIsRarelyWrong(t *testing.T) {
	if testing.Short() {
		t.Skip("draws thousands of jobs: make check runs it")
	}
	t.Parallel()
	const alpha = 0.05
	designs := []struct {
		name   string
		before func(looks int) int // untuned epochs there are at that look
	}{
		{"two untuned epochs", func(int) int { return 2 }},
		{"twelve untuned epochs", func(int) int { return 12 }},
		{"both sides grow", func(n int) int { return n }},
	}
	for noiseName, makeNoise := range noises() {
		for _, d := range designs {
			t.Run(noiseName+", "+d.name, func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(7, uint64(len(noiseName)+len(d.name))))
				noise := makeNoise(rng)
				wrong, n := 0, sequences()
				before, after := make([]float64, 200), make([]float64, 200)
				for range n {
					for i := range before {
						before[i], after[i] = .05*noise(), .05*noise()
					}
					for _, k := range looks() {
						e := twoSamples(before[:d.before(k)], after[:k], 0, alpha)
						if e.low() > 0 || e.high() < 0 {
							wrong++
							break
						}
					}
				}
				t.Logf("%s, %s: %d of %d sequences made a false claim", noiseName, d.name, wrong, n)
				if wrong > allowed(n, alpha) {
					t.Errorf("%d of %d sequences made a false claim, want at most %d", wrong, n, allowed(n, alpha))
				}
			})
		}
	}
}

func TestAnotherAttemptOfTheSameSettingsIsRarelyClaimed(t *testing.T) {
	t.Parallel()
	const alpha, attemptSD = 0.05, 0.01
	rng := rand.New(rand.NewPCG(3, 4))
	wrong, n := 0, sequences()
	before, after := make([]float64, 6), make([]float64, 200)
	for range n {
		b, a := attemptSD*rng.NormFloat64(), attemptSD*rng.NormFloat64()
		for i := range before {
			before[i] = b + .003*rng.NormFloat64()
		}
		for i := range after {
			after[i] = a + .003*rng.NormFloat64()
		}
		for _, k := range looks() {
			if e := twoSamples(before, after[:k], attemptSD, alpha); e.low() > 0 || e.high() < 0 {
				wrong++
				break
			}
		}
	}
	t.Logf("%d of %d", wrong, n)
	if wrong > allowed(n, alpha) {
		t.Errorf("%d of %d sequences made a false claim, want at most %d", wrong, n, allowed(n, alpha))
	}
}

// Two untuned epochs are what a job has by default. Where one of them stalled, forty
// quiet epochs after the move must not make a saving of it.
func TestAStallAmongFewUntunedEpochsIsRarelyClaimed(t *testing.T) {
	t.Parallel()
	const alpha = 0.05
	for untuned := 2; untuned <= 3; untuned++ {
		rng := rand.New(rand.NewPCG(31, uint64(untuned)))
		draw := func(list []float64) {
			for i := range list {
				list[i] = .05 * rng.NormFloat64()
				if rng.IntN(20) == 0 {
					list[i] += math.Ln2
				}
			}
		}
		wrong, n := 0, sequences()
		before, after := make([]float64, untuned), make([]float64, 60)
		for range n {
			draw(before)
			draw(after)
			for _, k := range looks() {
				if k > len(after) {
					break
				}
				if e := twoSamples(before, after[:k], AttemptSD, alpha); e.low() > 0 || e.high() < 0 {
					wrong++
					break
				}
			}
		}
		t.Logf("%d untuned: %d of %d", untuned, wrong, n)
		if wrong > int(alpha*float64(n)) {
			t.Errorf("%d untuned epochs: %d of %d sequences made a false claim, want at most %g of them", untuned, wrong, n, alpha)
		}
	}
}

func TestASavingIsFoundThoughAnUntunedEpochStalled(t *testing.T) {
	t.Parallel()
	before := []float64{math.Log(10), math.Log(20)}
	after := make([]float64, 20)
	for i := range after {
		after[i] = math.Log(5) + .02*float64(1-2*(i%2))
	}
	if e := twoSamples(before, after, AttemptSD, .05); e.high() >= 0 {
		t.Errorf("half the time of the fast untuned epoch: [%g, %g], want an improvement", e.low(), e.high())
	}
	for i := range after {
		after[i] += math.Ln2
	}
	if e := twoSamples(before, after, AttemptSD, .05); e.high() < 0 || e.low() > -math.Ln2 {
		t.Errorf("the time of one of two untuned epochs: [%g, %g], want both to be possible", e.low(), e.high())
	}
}

// A fifth less time at 5 % noise is found within eight epochs a side, with the
// defaults, nearly always.
func TestAFifthIsFoundWithinEightEpochs(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(21, 22))
	const n = 1000
	for name, untuned := range map[string]int{"eight untuned": 8, "three untuned": 3} {
		found := 0
		for range n {
			before, after := make([]float64, untuned), make([]float64, 8)
			for i := range before {
				before[i] = .05 * rng.NormFloat64()
			}
			for i := range after {
				after[i] = math.Log(.8) + .05*rng.NormFloat64()
			}
			if twoSamples(before, after, AttemptSD, .05).high() < 0 {
				found++
			}
		}
		t.Logf("%s: %d of %d", name, found, n)
		if found < n*8/10 {
			t.Errorf("%s: found in %d of %d jobs, want at least 80 %%", name, found, n)
		}
	}
}

func TestHalfWidthSolvesTheEquationItClaimsTo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sse := rapid.Float64Range(1e-6, 10).Draw(t, "sse")
		nu := rapid.Float64Range(.5, 500).Draw(t, "nu")
		power := rapid.Float64Range(1, 1000).Draw(t, "power")
		alpha := rapid.Float64Range(.001, .3).Draw(t, "alpha")
		w := halfWidth(sse, nu, power, alpha)
		r := mixture / (mixture + nu)
		logBayes := func(d float64) float64 {
			return math.Log(r)/2 + power/2*math.Log((sse+nu*d*d)/(sse+r*nu*d*d))
		}
		if math.IsInf(w, 1) {
			if limit := logBayes(1e9); limit > -math.Log(alpha)+1e-6 {
				t.Fatalf("unbounded though the factor reaches %g", limit)
			}
			return
		}
		if got, want := logBayes(w), -math.Log(alpha); math.Abs(got-want) > 1e-6*math.Max(1, power) {
			t.Fatalf("ln B at the bound = %g, want %g", got, want)
		}
	})
}

// The Bayes factor integrates the normal likelihood ratio over its mixture: an
// independent numerical integration agrees.
func TestTheBayesFactorIsTheIntegralItStandsFor(t *testing.T) {
	t.Parallel()
	xs := []float64{.3, -.1, .25, .4, .05}
	n := float64(len(xs))
	mean := tuning.Sum(xs, func(x float64) float64 { return x / n })
	sse := tuning.Sum(xs, func(x float64) float64 { return (x - mean) * (x - mean) })
	// likelihood of the data at standardised effect g, scale integrated by 1/σ.
	like := func(g float64) float64 {
		var sum float64
		const steps = 4000
		for i := range steps {
			ls := -6 + 10*(float64(i)+.5)/steps // ln σ
			s := math.Exp(ls)
			q := sse + n*(mean-g*s)*(mean-g*s)
			sum += math.Exp(-n*ls-q/(2*s*s)) * 10 / steps
		}
		return sum
	}
	var mixed float64
	prior := distuv.Normal{Mu: 0, Sigma: 1 / math.Sqrt(mixture)}
	const steps = 800
	for i := range steps {
		g := -20 + 40*(float64(i)+.5)/steps
		mixed += prior.Prob(g) * like(g) * 40 / steps
	}
	got := mixed / like(0)
	r := mixture / (mixture + n)
	want := math.Sqrt(r) * math.Pow((sse+n*mean*mean)/(sse+r*n*mean*mean), n/2)
	if math.Abs(got/want-1) > 1e-3 {
		t.Errorf("integral %g, formula %g", got, want)
	}
}

func TestTheIntervalOnlyDependsOnDifferences(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		logs := rapid.SliceOfN(rapid.Float64Range(-2, 2), 1, 30)
		a, b := logs.Draw(t, "before"), logs.Draw(t, "after")
		shift := rapid.Float64Range(-5, 5).Draw(t, "shift")
		moved := func(xs []float64) []float64 {
			out := make([]float64, len(xs))
			for i, x := range xs {
				out[i] = x + shift
			}
			return out
		}
		e, f := twoSamples(a, b, .01, .05), twoSamples(moved(a), moved(b), .01, .05)
		if math.Abs(e.value-f.value) > 1e-9 || math.Abs(e.low()-f.low()) > 1e-6 {
			t.Fatalf("%+v moved by %g is %+v", e, shift, f)
		}
		if !(e.low() <= e.value && e.value <= e.high()) {
			t.Fatalf("estimate %g outside its interval [%g, %g]", e.value, e.low(), e.high())
		}
	})
}

func TestAnEpochBetweenFastAndSlowOnesIsOfBothHoweverItIsRounded(t *testing.T) {
	t.Parallel()
	before, after := slices.Repeat([]float64{1}, 16), []float64{1, 2, 2.220446049250313e-16, -1.9999999999999996}
	e := twoSamples(before, after, .01, .05)
	for _, xs := range [][]float64{before, after} {
		for i := range xs {
			xs[i] += 1.0000000000000002
		}
	}
	if f := twoSamples(before, after, .01, .05); math.Abs(e.half-f.half) > 1e-6 {
		t.Errorf("%+v, and moved by 1 %+v", e, f)
	}
}

func TestAWiderLevelGivesAWiderInterval(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		logs := rapid.SliceOfN(rapid.Float64Range(-2, 2), 2, 30)
		a, b := logs.Draw(t, "before"), logs.Draw(t, "after")
		alpha := rapid.Float64Range(.002, .2).Draw(t, "alpha")
		if twoSamples(a, b, .01, alpha/2).half < twoSamples(a, b, .01, alpha).half {
			t.Fatal("half the error gives a narrower interval")
		}
	})
}

func TestNothingIsKnownWithoutObservations(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]estimate{
		"no epochs before": twoSamples(nil, []float64{1}, 0, .05),
		"no epochs after":  twoSamples([]float64{1}, nil, 0, .05),
		"no pairs":         symmetricPairs(nil, .05),
		"no error allowed": {half: halfWidth(1, 1, 1, 0)},
	} {
		if e.low() != -Unbounded || e.high() != Unbounded || e.n != 0 {
			t.Errorf("%s: %+v, want unbounded", name, e)
		}
	}
}

func TestClippingAgreesWithItsDefinition(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(-3, 3), 1, 40).Draw(t, "xs")
		m := tuning.Median(xs)
		dev := make([]float64, len(xs))
		for i, x := range xs {
			dev[i] = math.Abs(x - m)
		}
		reach := clipAt * max(madToSD*tuning.Median(dev), clipFloor)
		for i, x := range clip(xs) {
			wanted := min(max(xs[i], m-reach), m+reach)
			if len(xs) < clipFrom {
				wanted = xs[i]
			}
			if math.Abs(x-wanted) > 1e-9 {
				t.Fatalf("clip(%v)[%d] = %g, want %g", xs, i, x, wanted)
			}
		}
	})
}
