package search

import (
	"fmt"
	"math/rand/v2"

	"pitchpipe/controller/search/propose"
)

// Method is a way to search.
type Method string

// The methods. Grid and LatinHypercube are laid out anew for every budget. WarmStart is
// GaussianProcess with the other workloads of the same file as its history.
const (
	Random          Method = "random"
	Grid            Method = "grid"
	LatinHypercube  Method = "latin_hypercube"
	GaussianProcess Method = "gaussian_process"
	WarmStart       Method = "gaussian_process_warm"
	Bandit          Method = "bandit"
)

// Methods lists the methods.
func Methods() []Method {
	return []Method{Random, Grid, LatinHypercube, GaussianProcess, WarmStart, Bandit}
}

// sized reports whether a method has to know the budget beforehand.
func (m Method) sized() bool { return m == Grid || m == LatinHypercube }

func (p problem) method(m Method, budget int, rng *rand.Rand) propose.Method {
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
	case Random:
	}
	return c.Random(rng)
}

// remember gives each problem what the other workloads of the table let expect; nil
// where there is no other.
func remember(problems []problem) error {
	for i, p := range problems {
		var past []propose.Past
		for _, q := range problems {
			if q.workload != p.workload && q.outcome == p.outcome {
				past = append(past, propose.Past{Settings: q.settings, Losses: q.truth})
			}
		}
		var err error
		if problems[i].expected, err = p.candidates.History(past); err != nil {
			return fmt.Errorf("history of %s: %w", p.workload, err)
		}
	}
	return nil
}
