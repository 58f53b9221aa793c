package hyper

import (
	"math"
	"math/rand/v2"

	"pitchpipe/controller/search/propose"
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
	factor = 3  // ASHA promotes the best of so many
	share  = 30 // the lowest rung is at least this part of a full run,
	second = 2  // and never the first epoch, which ranks runs by how they warm up
	asked  = 40 // runs after which the process is asked no more: by then it knows the space
)

// ladder is a method with its rungs; runs is how many full ones a search can pay.
func (p problem) ladder(m Method, runs int, rng *rand.Rand) propose.Ladder {
	c, expected := p.candidates, p.expected
	least := p.full
	fresh := c.Random(rng)
	switch m {
	case Grid:
		fresh = c.Grid(runs, rng)
	case LatinHypercube:
		fresh = c.LatinHypercube(runs, rng)
	case GaussianProcess:
		fresh = propose.Turns{One: c.Gaussian(nil, rng), Other: fresh, Every: 1, UpTo: asked}
	case ASHAModel:
		expected = nil
		fallthrough
	case ASHAWarm:
		fresh = propose.Turns{One: c.Gaussian(expected, rng), Other: fresh, Every: 2, UpTo: asked}
		fallthrough
	case ASHA:
		least = max(second, (p.full+share-1)/share, p.cadence+1)
	case Random:
	}
	return propose.Climb(p.full, least, factor, fresh)
}

// epoch is what one epoch of a run brought.
type epoch struct {
	loss    float64 // after it; less is better
	seconds float64 // of this epoch alone
	failed  bool    // the run broke; its seconds are paid all the same
}

// result is how far a search came.
type result struct {
	trials  []propose.Trial
	seconds float64 // paid, at most the budget
	loss    float64 // the least that a run had when the seconds ended; the worst after a first epoch where none had any
}

// search plays a search, epoch by epoch, until the next one would cost more than what is
// left of the budget in seconds, or nothing is left to do. A trial that runs on pays only
// for its new epochs.
func (p problem) search(m Method, budget float64, rng *rand.Rand) (result, error) {
	l := p.ladder(m, max(int(budget/p.median), 1), rng)
	r := result{loss: math.Inf(1)}
	index := map[int]int{} // of the trial, by candidate
	ran := map[int]epoch{} // the last epoch of each, by candidate
	for {
		at, err := l.Next(r.trials)
		if err != nil {
			return r, err
		}
		if at < 0 {
			break
		}
		i, ok := index[at]
		if !ok {
			i, index[at] = len(r.trials), len(r.trials)
			r.trials = append(r.trials, propose.Trial{At: at})
		}
		t := &r.trials[i]
		from := 1
		if k := len(t.Losses); k > 0 {
			from = l.Rungs[k-1] + 1
		}
		last, ended := p.stretch(at, from, l.Rungs[len(t.Losses)], budget-r.seconds)
		r.seconds += last.seconds
		if last.loss >= 0 {
			ran[at] = last
		}
		if !ended {
			break
		}
		loss := logOf(last.loss)
		if last.failed {
			loss = math.NaN()
		}
		t.Losses = append(t.Losses, loss)
	}
	for _, e := range ran {
		if !e.failed {
			r.loss = min(r.loss, e.loss)
		}
	}
	if math.IsInf(r.loss, 1) {
		r.loss = p.worst()
	}
	return r, nil
}

// stretch runs epochs from one to another, both included: the last that the budget paid
// for, with the seconds of all; its loss is NaN where there was none. False: the budget
// ended before.
func (p problem) stretch(at, from, to int, budget float64) (epoch, bool) {
	last := epoch{loss: math.NaN()}
	curve := p.curves[at]
	for n := from; n <= to; n++ {
		e := curve[min(n, len(curve))-1]
		if n > len(curve) { // recorded shorter than others: it stays as it is
			e.seconds = 0
		}
		e.seconds += last.seconds
		if e.seconds > budget {
			return last, false
		}
		if last = e; e.failed {
			break
		}
	}
	return last, true
}
