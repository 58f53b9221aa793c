package replay

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search/propose"
)

// HyperInput is what Hyper replays: learning curves.
type HyperInput struct {
	evaluate.Set
	Seconds float64  // for each search; 0: as many as Runs median full runs of the workload
	Runs    float64  // 0: 10
	Methods []Method // empty: all
	Seeds   int      // searches of each workload and method
	Seed    uint64
}

// HyperMethods lists the methods of Hyper. Random, Grid, LatinHypercube and
// GaussianProcess run everything to its end. ASHA stops runs early and begins random ones;
// with ASHAModel every second new run comes from a Gaussian process over what runs reached
// at the lowest rung, and ASHAWarm gives that process the other workloads of the file as
// its history.
func HyperMethods() []Method {
	return []Method{Random, Grid, LatinHypercube, GaussianProcess, ASHA, ASHAModel, ASHAWarm}
}

// Hyper searches every workload of every table with every method, all with the same
// seconds. One worker searches: seconds are those of computing, not of waiting.
func Hyper(ctx context.Context, in HyperInput, progress evaluate.Progress) (evaluate.Report, error) {
	in.Runs = cmp.Or(in.Runs, 10)
	methods, err := chosen(in.Methods, HyperMethods())
	err = cmp.Or(
		err,
		evaluate.Want(len(in.Curves) > 0, "no file: want curves"),
		evaluate.Want(in.Seconds >= 0 && in.Runs > 0, "%g seconds, %g runs: want more than 0", in.Seconds, in.Runs),
		evaluate.Want(in.Seeds >= 1, "%d seeds: want 1 at least", in.Seeds),
	)
	if err != nil {
		return evaluate.Report{}, err
	}
	return comparison{
		methods: methods, seed: in.Seed, problems: curvesToSearch, rows: in.rows, keys: []string{"method"}, figures: []string{"regret_mean"},
	}.report(ctx, "evaluate hyper", in.Curves, progress)
}

// rows is one row: the mean over the seeds.
func (in HyperInput) rows(ctx context.Context, p *problem, m Method) ([]evaluate.Line, error) {
	row := p.Line().With(evaluate.Line{"method": m, "seeds": in.Seeds})
	if p.median == 0 {
		return []evaluate.Line{row}, nil
	}
	seconds := cmp.Or(in.Seconds, in.Runs*p.median)
	row["seconds"] = evaluate.Figure(seconds)
	if m == ASHAWarm && p.expected == nil {
		return []evaluate.Line{row}, nil
	}
	var rows []evaluate.Line
	for seed := range in.Seeds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := p.climb(m, seconds, p.luck(in.Seed+uint64(seed), "")) //nolint:gosec // an index
		if err != nil {
			return nil, fmt.Errorf("%s with %s: %w", p.Workload, m, err)
		}
		rows = append(rows, row.With(evaluate.Line{
			"regret_mean":       evaluate.Figure(max(r.loss-p.optimum, 0)),
			"seconds_used_mean": evaluate.Figure(r.seconds), "runs_mean": evaluate.Figure(len(r.trials)),
		}))
	}
	return []evaluate.Line{evaluate.Average(rows)}, nil
}

const (
	factor    = 3  // ASHA promotes the best of so many
	part      = 30 // the lowest rung is at least this part of a full run,
	second    = 2  // and never the first epoch, which ranks runs by how they warm up
	askedUpTo = 40 // runs after which the process is asked no more: by then it knows the space
)

// ladder is a method with its rungs; runs is how many full ones a search can pay.
func (p *problem) ladder(m Method, runs int, rng *rand.Rand) propose.Ladder {
	least, fresh := p.full, p.candidates.Random(rng)
	expected := p.expected
	switch m {
	case Grid, LatinHypercube:
		fresh = p.method(m, runs, rng)
	case GaussianProcess:
		fresh = propose.Turns{One: p.candidates.Gaussian(nil, rng), Other: fresh, Every: 1, UpTo: askedUpTo}
	case ASHAModel:
		expected = nil
		fallthrough
	case ASHAWarm:
		fresh = propose.Turns{One: p.candidates.Gaussian(expected, rng), Other: fresh, Every: 2, UpTo: askedUpTo}
		fallthrough
	case ASHA:
		least = max(second, (p.full+part-1)/part, p.cadence+1)
	default:
	}
	return propose.Climb(p.full, least, factor, fresh)
}

type climbed struct {
	trials  []propose.Trial
	seconds float64 // paid, at most the budget
	loss    float64 // the least that a run had when the seconds ended; the worst after a first epoch where none had any
}

// climb plays a search, epoch by epoch, until the next one would cost more than what is
// left of the budget in seconds, or nothing is left to do. A trial that runs on pays only
// for its new epochs.
func (p *problem) climb(m Method, budget float64, rng *rand.Rand) (climbed, error) {
	l := p.ladder(m, max(int(budget/p.median), 1), rng)
	r := climbed{loss: math.Inf(1)}
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
		r.loss = slices.MaxFunc(p.curves, func(a, b []epoch) int { return cmp.Compare(a[0].loss, b[0].loss) })[0].loss
	}
	return r, nil
}

// stretch runs epochs from one to another, both included: the last that the budget paid
// for, with the seconds of all; its loss is NaN where there was none. False: the budget
// ended before.
func (p *problem) stretch(at, from, to int, budget float64) (epoch, bool) {
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
