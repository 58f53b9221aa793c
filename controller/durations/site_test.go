package durations_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"pitchpipe/controller/durations"
)

// site makes jobs of users with habits: each has three programs, each program its own length, size and requested
// limit. Programs come in bursts and go out of use, and one run in twenty fails early.
func site(seed uint64, n int) []durations.Ended {
	rng := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a simulation
	type program struct {
		f           durations.Features
		mean, sigma float64
	}
	write := func(u int) program {
		size := 1 << rng.IntN(6)
		mean := 4 + 1.2*float64(u%5) + rng.NormFloat64() + 0.3*math.Log(float64(size))
		return program{durations.Features{
			User: fmt.Sprintf("user%d", u), Group: fmt.Sprintf("q%d", u%3), Account: fmt.Sprintf("acct%d", u%7),
			Name: fmt.Sprintf("prog%c-%d", 'a'+rng.IntN(20), rng.IntN(100)), CPUs: size, Nodes: 1 + size/16,
			Limit: 3600 * math.Ceil(math.Exp(mean+1+rng.Float64())/3600),
		}, mean, []float64{0.05, 0.3, 1}[rng.IntN(3)]}
	}
	var programs []program
	for u := range 150 {
		programs = append(programs, write(u/3))
	}
	at := 1.6e9
	var out []durations.Ended
	for len(out) < n {
		k := rng.IntN(len(programs))
		if rng.IntN(20) == 0 {
			programs[k] = write(k / 3)
		}
		p := programs[k]
		for range 1 + rng.IntN(8) {
			at += 200 * rng.ExpFloat64()
			e := durations.Ended{Features: p.f, Duration: min(p.f.Limit, math.Exp(p.mean+p.sigma*rng.NormFloat64()))}
			if rng.IntN(20) == 0 {
				e.Duration *= 0.1 * rng.Float64()
			}
			e.Submit = at
			e.End = at + 600*rng.ExpFloat64() + e.Duration
			out = append(out, e)
		}
	}
	return out
}
