package replay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

// Method names a way to search.
type Method = string

// The methods.
const (
	Random          Method = "random"
	Grid            Method = "grid"
	LatinHypercube  Method = "latin_hypercube"
	GaussianProcess Method = "gaussian_process"
	WarmStart       Method = "gaussian_process_warm"
	Bandit          Method = "bandit"
	ASHA            Method = "asha"
	ASHAModel       Method = "asha_gaussian_process"
	ASHAWarm        Method = "asha_gaussian_process_warm"
)

// leastLoss is the least error or loss that counts: what is perfect has no logarithm.
const leastLoss = 1e-6

// problem is one workload on one machine: the settings that were recorded, and what came
// out. Outcomes are logarithms and are minimised.
type problem struct {
	records.Group
	outcome    string
	settings   []tuning.Settings
	candidates *propose.Candidates
	expected   []float64 // by the other workloads of the table; nil: there is none
	truth      []float64 // by setting
	worst      float64   // of a run

	runs [][]float64 // by setting; NaN: it failed

	curves  [][]epoch // by setting, each of which has one run here
	full    int       // epochs of the longest run
	cadence int       // epochs that runs usually go without an outcome
	median  float64   // seconds of a run; 0: seconds are not recorded
	optimum float64   // least error of a run at its last epoch
}

// chosen are the methods asked for, all where none is.
func chosen(asked, all []Method) ([]Method, error) {
	for _, m := range asked {
		if !slices.Contains(all, m) {
			return nil, result.Invalid("method %q: want one of %s", m, strings.Join(all, ", "))
		}
	}
	if len(asked) == 0 {
		return all, nil
	}
	return asked, nil
}

// method is a way to propose settings, in a budget of so many.
func (p *problem) method(m Method, budget int, rng *rand.Rand) propose.Method {
	c := p.candidates
	switch m {
	case Grid:
		return c.Grid(budget, rng)
	case LatinHypercube:
		return c.LatinHypercube(budget, rng)
	case Bandit:
		return bandit{c, rng}
	case GaussianProcess:
		return c.Gaussian(nil, rng)
	case WarmStart:
		return c.Gaussian(p.expected, rng)
	default:
		return c.Random(rng)
	}
}

// remember gives each problem what the other workloads of the table let expect.
func remember(problems []*problem) error {
	for _, p := range problems {
		var past []propose.Past
		for _, q := range problems {
			if q.Workload != p.Workload && q.outcome == p.outcome {
				past = append(past, propose.Past{Settings: q.settings, Losses: q.truth})
			}
		}
		var err error
		if p.expected, err = p.candidates.History(past); err != nil {
			return fmt.Errorf("history of %s: %w", p.Workload, err)
		}
	}
	return nil
}

// searches runs each method on each problem of each file; the rows come by file.
func searches[R any](
	ctx context.Context, progress result.Progress, files [][]*problem, methods []Method, do func(context.Context, *problem, Method) ([]R, error),
) ([][]R, error) {
	type task struct {
		file    int
		problem *problem
		method  Method
		rows    []R
	}
	var all []*task
	for i, problems := range files {
		for _, p := range problems {
			for _, m := range methods {
				all = append(all, &task{file: i, problem: p, method: m})
			}
		}
	}
	err := result.Each(ctx, len(all), progress, func(ctx context.Context, i int) (string, error) {
		t := all[i]
		var err error
		t.rows, err = do(ctx, t.problem, t.method)
		return strings.TrimSpace(t.problem.Name()+" "+t.problem.Machine) + ", " + t.method, err
	})
	out := make([][]R, len(files))
	for _, t := range all {
		out[t.file] = append(out[t.file], t.rows...)
	}
	return out, err
}

// over compares a mean with that of random, unknown where random is always right.
func over(mean, random result.Figure) result.Figure {
	if random > 0 {
		return mean / random
	}
	return result.Unknown()
}
