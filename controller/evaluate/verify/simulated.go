package verify

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"pitchpipe/controller/tuning"
	mind "pitchpipe/controller/verify"
)

// series draws the logarithms of consecutive epochs.
type series func(rng *rand.Rand, n int) []float64

// epochNoise is the standard deviation of ln(seconds) of a simulated epoch.
const epochNoise = 0.05

// runNoise is the same between runs of one job.
const runNoise = 0.03

func normal(sd float64) series {
	return func(rng *rand.Rand, n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = sd * rng.NormFloat64()
		}
		return out
	}
}

// correlated is an autoregression of the first order that has long been running.
func correlated(sd, rho float64) series {
	return func(rng *rand.Rand, n int) []float64 {
		out := make([]float64, n)
		at := rng.NormFloat64()
		for i := range out {
			out[i] = sd * at
			at = rho*at + math.Sqrt(1-rho*rho)*rng.NormFloat64()
		}
		return out
	}
}

// heavy has the tails of a t distribution of three degrees of freedom.
func heavy(sd float64) series {
	return func(rng *rand.Rand, n int) []float64 {
		d := distuv.StudentsT{Sigma: sd / math.Sqrt(3), Nu: 3, Src: rng}
		out := make([]float64, n)
		for i := range out {
			out[i] = d.Rand()
		}
		return out
	}
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

// trend adds so much to each further epoch.
func trend(noise series, step float64) series {
	return func(rng *rand.Rand, n int) []float64 {
		out := noise(rng, n)
		for i := range out {
			out[i] += step * float64(i)
		}
		return out
	}
}

func exps(logs []float64, more float64) []measured {
	out := make([]measured, len(logs))
	for i, v := range logs {
		out[i].seconds = 10 * math.Exp(v+more)
	}
	return out
}

// The limits that nulls break.
const (
	limitDrift    = "within a job the untuned epochs come first, so an effect of time counts as one of the setting"
	limitAttempts = "attempts of one job differ by more than the variance between attempts that is taken as known"
)

// epochsOfAPair is how many epochs the jobs of simulated pairs have.
const epochsOfAPair = 6

// simulated are the nulls of known kinds.
func (in Input) simulated() []null {
	var out []null
	known := mind.AttemptSD
	for _, c := range []struct {
		name     string
		noise    series
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
		{"a drift of 0.5 % with each epoch", trend(normal(epochNoise), 0.005), known, limitDrift},
	} {
		out = append(out, null{
			comparison: Job, name: c.name, source: Simulated, objective: tuning.Time, limit: c.limit, workloads: []string{""},
			draw: func(rng *rand.Rand, _ int) replay { return in.simulatedJob(rng, c.noise, c.attempts) },
		})
	}
	alike := func(*rand.Rand) float64 { return 0 }
	for _, c := range []struct {
		name  string
		noise series
		runs  series // between runs
		size  func(*rand.Rand) float64
	}{
		{"runs differ by 3 %", normal(epochNoise), normal(runNoise), alike},
		{"autocorrelated noise of 5 %, 0.6 from epoch to epoch", correlated(epochNoise, 0.6), normal(runNoise), alike},
		{"heavy tails (t3) of 5 %, between runs too", heavy(epochNoise), heavy(epochNoise), alike},
		{"a drift of 0.5 % with each epoch", trend(normal(epochNoise), 0.005), normal(runNoise), alike},
		{"inputs of any size", normal(epochNoise), normal(runNoise), func(r *rand.Rand) float64 { return 0.5 * r.NormFloat64() }},
		{"one input in ten is ten times as big", normal(epochNoise), normal(runNoise), func(r *rand.Rand) float64 {
			if r.IntN(10) == 0 {
				return math.Ln10
			}
			return 0
		}},
	} {
		job := func(rng *rand.Rand) []measured {
			return exps(c.noise(rng, epochsOfAPair), c.runs(rng, 1)[0]+c.size(rng))
		}
		out = append(out, null{
			comparison: Pairs, name: c.name, source: Simulated, objective: tuning.Time, workloads: []string{""},
			draw: func(rng *rand.Rand, _ int) replay {
				var r replay
				for range in.Pairs {
					r.pairs = append(r.pairs, couple{job(rng), job(rng)})
				}
				return r
			},
		})
	}
	return out
}

// simulatedJob draws a job whose noise goes on over the move, while each attempt has a
// level of its own.
func (in Input) simulatedJob(rng *rand.Rand, noise series, attempts float64) replay {
	logs := noise(rng, in.Untuned+in.Epochs)
	return replay{
		before: exps(logs[:in.Untuned], attempts*rng.NormFloat64()),
		after:  exps(logs[in.Untuned:], attempts*rng.NormFloat64()),
	}
}
