package models

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
)

// series draws the logarithms of consecutive epochs.
type series func(rng *rand.Rand, n int) []float64

const (
	epochNoise    = 0.05 // standard deviation of ln(seconds) of a simulated epoch
	runNoise      = 0.03 // the same between runs of one job
	epochsOfAPair = 6    // that the jobs of simulated pairs have
)

// The limits that nulls break.
const (
	limitDrift    = "within a job the untuned epochs come first, so an effect of time counts as one of the setting"
	limitAttempts = "attempts of one job differ by more than the variance between attempts that is taken as known"
)

// each draws one epoch after the other from a source that is made for each series.
func each(source func(rng *rand.Rand) func(i int) float64) series {
	return func(rng *rand.Rand, n int) []float64 {
		out, next := make([]float64, n), source(rng)
		for i := range out {
			out[i] = next(i)
		}
		return out
	}
}

func normal(sd float64) series { return trend(sd, 0) }

// trend adds so much to each further epoch.
func trend(sd, step float64) series {
	return each(func(rng *rand.Rand) func(int) float64 {
		return func(i int) float64 { return sd*rng.NormFloat64() + step*float64(i) }
	})
}

// correlated is an autoregression of the first order that has long been running.
func correlated(sd, rho float64) series {
	return each(func(rng *rand.Rand) func(int) float64 {
		at := rng.NormFloat64()
		return func(int) float64 {
			now := sd * at
			at = rho*at + math.Sqrt(1-rho*rho)*rng.NormFloat64()
			return now
		}
	})
}

// heavy has the tails of a t distribution of three degrees of freedom.
func heavy(sd float64) series {
	return each(func(rng *rand.Rand) func(int) float64 {
		d := distuv.StudentsT{Sigma: sd / math.Sqrt(3), Nu: 3, Src: rng}
		return func(int) float64 { return d.Rand() }
	})
}

// stalls are epochs of which one in twenty takes twice as long.
func stalls(sd float64) series {
	return func(rng *rand.Rand, n int) []float64 {
		out := normal(sd)(rng, n)
		for i := range out {
			if rng.IntN(20) == 0 {
				out[i] += math.Ln2
			}
		}
		return out
	}
}

func exps(logs []float64, more float64) []tuning.Spent {
	out := make([]tuning.Spent, len(logs))
	for i, v := range logs {
		out[i].Seconds = 10 * math.Exp(v+more)
	}
	return out
}

func (in VerifyInput) simulated() []null {
	var out []null
	known, drift := verify.AttemptSD, trend(epochNoise, 0.005)
	for _, c := range []struct {
		name     string
		noise    series // goes on over the move
		attempts float64
		limit    string
	}{
		{"independent noise of 5 %", normal(epochNoise), known, ""},
		{"noise of 0.3 %", normal(0.003), known, ""},
		{"autocorrelated noise of 5 %, 0.3 from epoch to epoch", correlated(epochNoise, 0.3), known, ""},
		{"autocorrelated noise of 5 %, 0.6 from epoch to epoch", correlated(epochNoise, 0.6), known, ""},
		{"heavy tails (t3) of 5 %", heavy(epochNoise), known, ""},
		{"one epoch in twenty takes twice as long", stalls(epochNoise), known, ""},
		{"attempts differ by 3 %", normal(epochNoise), 0.03, limitAttempts},
		{"a drift of 0.5 % with each epoch", drift, known, limitDrift},
	} {
		out = append(out, null{
			names: named(Job, c.name, Simulated, "", tuning.Time, c.limit), kinds: make([]kind, 1),
			draw: func(rng *rand.Rand, _ kind) replay {
				logs := c.noise(rng, in.Untuned+in.Epochs)
				before := exps(logs[:in.Untuned], c.attempts*rng.NormFloat64()) // each attempt has a level of its own
				return replay{before: before, after: exps(logs[in.Untuned:], c.attempts*rng.NormFloat64())}
			},
		})
	}
	same := func(*rand.Rand) float64 { return 0 }
	for _, c := range []struct {
		name  string
		noise series
		runs  series // between runs
		size  func(*rand.Rand) float64
	}{
		{"runs differ by 3 %", normal(epochNoise), normal(runNoise), same},
		{"autocorrelated noise of 5 %, 0.6 from epoch to epoch", correlated(epochNoise, 0.6), normal(runNoise), same},
		{"heavy tails (t3) of 5 %, between runs too", heavy(epochNoise), heavy(epochNoise), same},
		{"a drift of 0.5 % with each epoch", drift, normal(runNoise), same},
		{"inputs of any size", normal(epochNoise), normal(runNoise), func(r *rand.Rand) float64 { return 0.5 * r.NormFloat64() }},
		{"one input in ten is ten times as big", normal(epochNoise), normal(runNoise), func(r *rand.Rand) float64 {
			if r.IntN(10) == 0 {
				return math.Ln10
			}
			return 0
		}},
	} {
		job := func(rng *rand.Rand) []tuning.Spent {
			return exps(c.noise(rng, epochsOfAPair), c.runs(rng, 1)[0]+c.size(rng))
		}
		out = append(out, null{
			names: named(Pairs, c.name, Simulated, "", tuning.Time, ""), kinds: make([]kind, 1),
			draw: func(rng *rand.Rand, _ kind) replay {
				var r replay
				for range in.Pairs {
					r.pairs = append(r.pairs, [2][]tuning.Spent{job(rng), job(rng)})
				}
				return r
			},
		})
	}
	return out
}
