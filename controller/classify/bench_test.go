package classify_test

import (
	"fmt"
	"testing"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/tuning"
)

const (
	benchKinds    = 16
	benchFeatures = 60
)

// many draws runs of so many kinds with 60 features of hardware counters.
func many(n, kinds int) []classify.Sample {
	rng := source(7)
	centers := make([][]float64, kinds)
	for k := range centers {
		for range benchFeatures {
			centers[k] = append(centers[k], 0.5*rng.NormFloat64())
		}
	}
	out := make([]classify.Sample, n)
	for i := range out {
		f := make(map[string]float64, benchFeatures)
		for j, v := range centers[i%kinds] {
			f[fmt.Sprintf("event-%02d", j)] = v + 0.08*rng.NormFloat64()
		}
		out[i] = classify.Sample{
			Run: fmt.Sprintf("run-%06d", i), Kind: fmt.Sprint(i % kinds),
			Profile: tuning.Profile{Schema: "hw/1/60", Machine: "m", Settings: cores(2), Features: f},
		}
	}
	return out
}

func BenchmarkFit(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		samples := many(n, benchKinds)
		b.Run(fmt.Sprintf("%d profiles of %d features", n, benchFeatures), func(b *testing.B) {
			for b.Loop() {
				if _, err := classify.Fit(samples, classify.Config{}, source(1)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkClassify(b *testing.B) {
	samples := many(1000, benchKinds)
	m, err := classify.Fit(samples, classify.Config{}, source(1))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m.Classify(samples[0].Profile)
	}
}

// More runs than are looked at together give the same classes, and a kind of few runs
// among many is not lost.
func TestMoreRunsThanAreLookedAtTogetherAreTheirKindsAndARareOneToo(t *testing.T) {
	t.Parallel()
	const kinds = 5
	samples := many(2500, kinds) // a thousand are looked at together
	for i := range 3 {
		rare := samples[i]
		rare.Run, rare.Kind = fmt.Sprintf("rare-%d", i), "rare"
		f := map[string]float64{}
		for name := range rare.Profile.Features {
			f[name] = 9
		}
		rare.Profile.Features = f
		samples = append(samples, rare)
	}
	m := fit(t, classify.Config{MaxClasses: kinds + 3}, samples...) // each number of classes is tried
	if got := len(m.Strata[0].Groups); got != kinds+1 {
		t.Fatalf("%d classes of %d kinds", got, kinds+1)
	}
	total := 0
	for _, g := range m.Strata[0].Groups {
		total += len(g.Runs)
		if len(g.Kinds) != 1 {
			t.Errorf("class %s holds %v", g.ID, g.Kinds)
		}
	}
	if total != len(samples) {
		t.Errorf("%d of %d runs have a class", total, len(samples))
	}
}
