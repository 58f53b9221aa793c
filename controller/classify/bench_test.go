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
				if _, err := classify.Fit(samples); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkClassify(b *testing.B) {
	samples := many(1000, benchKinds)
	m, err := classify.Fit(samples)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m.Classify(samples[0].Profile)
	}
}

// BenchmarkRefit learns one run that no class recognises, in a stratum that knows as many
// as it keeps.
func BenchmarkRefit(b *testing.B) {
	for _, kinds := range []int{benchKinds, 64} {
		b.Run(fmt.Sprintf("%d kinds", kinds), func(b *testing.B) {
			samples, kept := many(2000, kinds), memory{}
			for _, s := range samples {
				kept[s.Run] = []classify.Sample{s}
			}
			m := fit(b, samples...)
			odd := many(1, 1)
			odd[0].Run = "odd"
			for name := range odd[0].Profile.Features {
				odd[0].Profile.Features[name] = 3
			}
			for b.Loop() {
				if again, err := classify.Refit(m, odd, kept.recall); err != nil || again == m {
					b.Fatal(again == m, err)
				}
			}
		})
	}
}
