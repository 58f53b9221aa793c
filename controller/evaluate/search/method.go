package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/bandit"
	"pitchpipe/controller/search/design"
	"pitchpipe/controller/search/gauss"
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

// sized tells whether a method has to know the budget beforehand.
func (m Method) sized() bool { return m == Grid || m == LatinHypercube }

// searcher says what to measure next; -1: nothing is left.
type searcher interface {
	Next(seen []design.Seen) (int, error)
}

// listed measures candidates in an order that is fixed beforehand.
type listed []int

func (l listed) Next(seen []design.Seen) (int, error) {
	if len(seen) >= len(l) {
		return -1, nil
	}
	return l[len(seen)], nil
}

// filled is a list of candidates, and after them all others in random order.
func filled(first []int, n int, rng *rand.Rand) listed {
	out := listed(first)
	for _, i := range rng.Perm(n) {
		if !slices.Contains(first, i) {
			out = append(out, i)
		}
	}
	return out
}

// gambler is a bandit with its source of luck.
type gambler struct {
	bandit.Search
	rng *rand.Rand
}

func (g gambler) Next(seen []design.Seen) (int, error) { return g.Search.Next(seen, g.rng), nil }

const (
	draws  = 20  // of a Latin hypercube
	levels = 5   // of a knob with many values, for the bandit
	memory = 100 // settings that a history is made of
)

func (p problem) searcher(m Method, budget int, rng *rand.Rand) (searcher, error) {
	n := len(p.settings)
	switch m {
	case Random:
		return listed(design.Random(n, rng)), nil
	case Grid:
		return filled(p.space.Snap(design.Grid(budget, len(p.space.Axes), rng), p.points), n, rng), nil
	case LatinHypercube:
		return filled(p.latin(budget, rng), n, rng), nil
	case Bandit:
		return gambler{bandit.Search{Levels: p.space.Levels(p.points, levels), Prior: bandit.DefaultPrior()}, rng}, nil
	case GaussianProcess, WarmStart:
		s := gauss.Search{
			Points: p.points, Words: p.space.Words(), Prior: gauss.DefaultPrior(),
			Start: p.latin(gauss.Start(len(p.space.Axes)), rng),
		}
		if m == WarmStart {
			s.Expected = p.expected
			s.Start = s.Start[:min(len(s.Start), gauss.Start(0))]
		}
		return s, nil
	}
	return nil, fmt.Errorf("%w: method %q: want one of %s", records.ErrInvalid, m, strings.Join(names(), ", "))
}

func names() []string {
	var out []string
	for _, m := range Methods() {
		out = append(out, string(m))
	}
	return out
}

func (p problem) latin(n int, rng *rand.Rand) []int {
	n = min(n, len(p.settings))
	return p.space.Snap(design.LatinHypercube(n, len(p.space.Axes), draws, rng), p.points)
}

// remember gives each problem what the other workloads of the table let expect; nil
// where there is no other.
func remember(problems []problem) error {
	for i, p := range problems {
		var past []gauss.Past
		for _, q := range problems {
			if q.workload != p.workload && q.outcome == p.outcome {
				past = append(past, gauss.Past{X: p.space.Points(q.settings), Y: q.truth})
			}
		}
		var err error
		if problems[i].expected, err = gauss.History(past, p.points, p.space.Words(), gauss.DefaultPrior(), memory); err != nil {
			return fmt.Errorf("history of %s: %w", p.workload, err)
		}
	}
	return nil
}
