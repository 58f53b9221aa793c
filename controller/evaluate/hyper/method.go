package hyper

import (
	"math"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/search/design"
	"pitchpipe/controller/search/gauss"
	"pitchpipe/controller/search/halving"
)

// Method is a way to search.
type Method string

// The methods. Random, Grid, LatinHypercube and GaussianProcess run everything to its
// end. ASHA stops runs early and begins random ones; with ASHAModel every second new
// run comes from a Gaussian process over what runs reached at the lowest rung, and
// ASHAWarm gives that process the other workloads of the file as its history.
const (
	Random          Method = "random"
	Grid            Method = "grid"
	LatinHypercube  Method = "latin_hypercube"
	GaussianProcess Method = "gaussian_process"
	ASHA            Method = "asha"
	ASHAModel       Method = "asha_gaussian_process"
	ASHAWarm        Method = "asha_gaussian_process_warm"
)

// Methods lists the methods.
func Methods() []Method {
	return []Method{Random, Grid, LatinHypercube, GaussianProcess, ASHA, ASHAModel, ASHAWarm}
}

const (
	draws  = 20 // of a Latin hypercube
	factor = 3  // ASHA promotes the best of so many
	share  = 30 // the lowest rung is at least this part of a full run,
	second = 2  // and never the first epoch, which ranks runs by how they warm up
	asked  = 40 // runs after which the process is asked no more: by then it knows the space
)

// ladder is how a method stops runs.
func (p problem) ladder(m Method) halving.Ladder {
	switch m {
	case ASHA, ASHAModel, ASHAWarm:
		return halving.Climb(p.full, max(second, (p.full+share-1)/share, p.cadence+1), factor)
	case Random, Grid, LatinHypercube, GaussianProcess:
	}
	return halving.Ladder{Rungs: []int{p.full}, Factor: factor}
}

// starter names the settings of new runs.
type starter struct {
	problem
	order []int // of those without a model
	every int   // that many-th new run comes from the model; 0: none
	model gauss.Search
	err   error
}

func (p problem) starter(m Method, seconds float64, rng *rand.Rand) *starter {
	n := len(p.curves)
	s := &starter{problem: p, order: design.Random(n, rng)}
	runs := max(int(seconds/p.median), 1) // that a search of full runs can pay
	switch m {
	case Grid:
		s.order = p.first(design.Grid(runs, len(p.space.Axes), rng), s.order)
	case LatinHypercube:
		s.order = p.first(design.LatinHypercube(min(runs, n), len(p.space.Axes), draws, rng), s.order)
	case GaussianProcess:
		s.every = 1
	case ASHAModel, ASHAWarm:
		s.every = 2
	case Random, ASHA:
	}
	if s.every == 0 {
		return s
	}
	s.model = gauss.Search{Points: p.points, Words: p.space.Words(), Prior: gauss.DefaultPrior()}
	k := gauss.Start(len(p.space.Axes))
	if m == ASHAWarm {
		s.model.Expected, k = p.expected, gauss.Start(0)
	}
	s.model.Start = p.space.Snap(design.LatinHypercube(min(k, n), len(p.space.Axes), draws, rng), p.points)
	return s
}

// first puts the runs nearest to points before the others.
func (p problem) first(points [][]float64, order []int) []int {
	out := p.space.Snap(points, p.points)
	for _, i := range order {
		if !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// next is the run to begin, -1: all were begun.
func (s *starter) next(trials []halving.Trial) int {
	if s.every > 0 && len(trials) < asked && len(trials)%s.every == 0 {
		var seen []design.Seen
		for _, t := range trials {
			if len(t.Losses) > 0 {
				seen = append(seen, design.Seen{At: t.At, Log: logOf(t.Losses[0]), Failed: math.IsNaN(t.Losses[0])})
			}
		}
		at, err := s.model.Next(seen)
		if err != nil {
			s.err = err
			return -1
		}
		return at
	}
	for _, i := range s.order {
		if !slices.ContainsFunc(trials, func(t halving.Trial) bool { return t.At == i }) {
			return i
		}
	}
	return -1
}

// search is one search; its regret.
func (p problem) search(m Method, seconds float64, rng *rand.Rand) (regret float64, r halving.Result, err error) {
	s := p.starter(m, seconds, rng)
	r = p.ladder(m).Run(seconds, s.next, p.epoch)
	if s.err != nil {
		return 0, r, s.err
	}
	if r.Best < 0 {
		worst := 0.0
		for _, c := range p.curves {
			worst = max(worst, c[0].Loss)
		}
		return max(worst-p.optimum, 0), r, nil
	}
	return max(r.Loss-p.optimum, 0), r, nil
}

// epoch replays epoch n of a run. One that was recorded shorter than others stays as it
// is and costs nothing.
func (p problem) epoch(at, n int) halving.Epoch {
	c := p.curves[at]
	if n > len(c) {
		return halving.Epoch{Loss: c[len(c)-1].Loss, Failed: c[len(c)-1].Failed}
	}
	return c[n-1]
}
