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

// stalls are epochs; one in twenty takes twice as long.
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
	simulated := func(comparison, name, limit string, draw func(*rand.Rand) replay) null {
		return null{
			names: named(comparison, name, Simulated, "", tuning.Time, limit), kinds: make([]kind, 1),
			draw: func(rng *rand.Rand, _ kind) replay { return draw(rng) },
		}
	}
	// The noise of a job goes on over its move; each attempt has its own level.
	job := func(name string, noise series, attempts float64, limit string) null {
		return simulated(Job, name, limit, func(rng *rand.Rand) replay {
			logs := noise(rng, in.Untuned+in.Epochs)
			before := exps(logs[:in.Untuned], attempts*rng.NormFloat64())
			return replay{before: before, after: exps(logs[in.Untuned:], attempts*rng.NormFloat64())}
		})
	}
	pairs := func(name string, noise, between series, size func(*rand.Rand) float64) null {
		job := func(rng *rand.Rand) []tuning.Spent {
			return exps(noise(rng, epochsOfAPair), between(rng, 1)[0]+size(rng))
		}
		return simulated(Pairs, name, "", func(rng *rand.Rand) replay {
			var r replay
			for range in.Pairs {
				r.pairs = append(r.pairs, [2][]tuning.Spent{job(rng), job(rng)})
			}
			return r
		})
	}
	same := func(*rand.Rand) float64 { return 0 }
	anySize := func(rng *rand.Rand) float64 { return 0.5 * rng.NormFloat64() }
	aFewBig := func(rng *rand.Rand) float64 {
		if rng.IntN(10) == 0 {
			return math.Ln10
		}
		return 0
	}
	noise, runs, drift, known := normal(epochNoise), normal(runNoise), trend(epochNoise, 0.005), verify.AttemptSD
	return []null{
		job("independent noise of 5 %", noise, known, ""),
		job("noise of 0.3 %", normal(0.003), known, ""),
		job("autocorrelated noise of 5 %, 0.3 from epoch to epoch", correlated(epochNoise, 0.3), known, ""),
		job("autocorrelated noise of 5 %, 0.6 from epoch to epoch", correlated(epochNoise, 0.6), known, ""),
		job("heavy tails (t3) of 5 %", heavy(epochNoise), known, ""),
		job("one epoch in twenty takes twice as long", stalls(epochNoise), known, ""),
		job("attempts differ by 3 %", noise, 0.03, limitAttempts),
		job("a drift of 0.5 % with each epoch", drift, known, limitDrift),
		pairs("runs differ by 3 %", noise, runs, same),
		pairs("autocorrelated noise of 5 %, 0.6 from epoch to epoch", correlated(epochNoise, 0.6), runs, same),
		pairs("heavy tails (t3) of 5 %, between runs too", heavy(epochNoise), heavy(epochNoise), same),
		pairs("a drift of 0.5 % with each epoch", drift, runs, same),
		pairs("inputs of any size", noise, runs, anySize),
		pairs("one input in ten is ten times as big", noise, runs, aFewBig),
	}
}
