package replay

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/tuning"
)

// HyperInput is what Hyper replays: learning curves.
type HyperInput struct {
	evaluate.Set
	Seconds float64  // for each search; 0: as many as Runs median full runs of the workload
	Runs    float64  // 0: 10
	Workers int      // runs that train side by side; 0: 1
	Methods []Method // empty: all
	Seeds   int      // searches of each workload and method
	Seed    uint64
}

// HyperMethods lists the methods of Hyper. Random, Grid, LatinHypercube and GaussianProcess
// run everything to its end. ASHA pauses runs and goes on with the best; of ASHAStopping they
// have no checkpoint, so that what ends early ends for good. With ASHAModel most new runs come
// from a Gaussian process, and ASHAWarm gives that process the other workloads of the file as
// its history.
func HyperMethods() []Method {
	return []Method{Random, Grid, LatinHypercube, GaussianProcess, ASHA, ASHAStopping, ASHAModel, ASHAWarm}
}

// Hyper searches every workload of every table with every method, all with the same
// seconds of a simulated clock, in which some workers train side by side.
func Hyper(ctx context.Context, in HyperInput, progress evaluate.Progress) (evaluate.Report, error) {
	in.Runs, in.Workers = cmp.Or(in.Runs, 10), cmp.Or(in.Workers, 1)
	methods, err := chosen(in.Methods, HyperMethods())
	err = cmp.Or(
		err,
		evaluate.Want(len(in.Curves) > 0, "no file: want curves"),
		evaluate.Want(in.Seconds >= 0 && in.Runs > 0, "%g seconds, %g runs: want more than 0", in.Seconds, in.Runs),
		evaluate.Want(in.Workers >= 1, "%d workers: want 1 at least", in.Workers),
		evaluate.Want(in.Seeds >= 1, "%d seeds: want 1 at least", in.Seeds),
	)
	if err != nil {
		return evaluate.Report{}, err
	}
	return comparison{
		methods: methods, seed: in.Seed, lacks: withoutOutcome, read: (*problem).readCurves, rows: in.rows,
		keys: []string{"method", "workers"}, figures: []string{"regret_mean", "error_mean", "reached_share"},
	}.report(ctx, "evaluate hyper", in.Curves, progress)
}

// rows is one row: the mean over the seeds.
func (in HyperInput) rows(ctx context.Context, p *problem, m Method) ([]evaluate.Line, error) {
	row := p.Line().With(evaluate.Line{"method": m, "workers": in.Workers, "seeds": in.Seeds})
	if p.median == 0 {
		return []evaluate.Line{row}, nil
	}
	seconds := cmp.Or(in.Seconds, in.Runs*p.median)
	row["seconds"] = evaluate.Figure(seconds)
	row["threshold"] = evaluate.Figure(p.threshold)
	if m == ASHAWarm && p.alone {
		return []evaluate.Line{row}, nil
	}
	var rows []evaluate.Line
	for seed := range in.Seeds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := p.play(m, in.Workers, seconds, p.luck(in.Seed+uint64(seed), "")) //nolint:gosec // an index
		if err != nil {
			return nil, fmt.Errorf("%s with %s: %w", p.Workload, m, err)
		}
		rows = append(rows, row.With(r))
	}
	out, each := evaluate.Average(rows), evaluate.Column(rows, "regret_mean")
	out[eachSeed] = each
	out["regret_low"], out["regret_high"] = evaluate.Interval(each)
	return []evaluate.Line{out}, nil
}

const (
	delay = 0.05 // seconds that a job takes to start, and to end
	equal = 5    // trials that begin every search of a seed
)

// play plays a search until a wall clock ends it or nothing is left to do: what it reached. Its seconds are simulated:
// the epochs of several workers come in the order in which they end.
func (p *problem) play(m Method, workers int, budget float64, rng *rand.Rand) (evaluate.Line, error) {
	method := map[Method]tuning.SearchMethod{
		GaussianProcess: tuning.GP, ASHA: tuning.ASHA, ASHAStopping: tuning.ASHA, ASHAModel: tuning.ASHAGP, ASHAWarm: tuning.ASHAGP,
	}[m]
	plan := searcher.Plan{
		Search: tuning.Search{
			Method: cmp.Or(method, tuning.Random), Trials: len(p.settings), Parallel: workers, Epochs: p.full, Eta: tuning.DefaultEta,
			Seed: rng.Uint64(), Failures: len(p.settings), Time: time.Duration(budget * float64(time.Second)),
		},
		Minimize: true, Resumes: m != ASHAStopping, Settings: p.settings, First: rng.Perm(len(p.settings))[:min(equal, len(p.settings))],
	}
	switch m {
	case Grid:
		plan.First = p.candidates.Grid(max(int(budget/p.median), 1), rng)
	case LatinHypercube:
		plan.First = p.candidates.LatinHypercube(max(int(budget/p.median), 1), rng)
	case ASHAWarm:
		plan.History = p.recalled
	default:
	}
	if p.cadence > 0 {
		plan.MinEpochs = max(plan.Rungs()[0], p.cadence+1)
	}
	s, err := preview.Play(plan, preview.Cluster{Start: delay, End: delay, Every: true, Epoch: p.epoch})
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says whose it is
	}
	used, best, reached := 0.0, p.begin, math.Inf(1) // reached: the seconds until the threshold
	for _, t := range s.Trials {
		for _, r := range t.Reports {
			if r.At > budget {
				break
			}
			used, best = max(used, r.At), min(best, r.Value)
			if r.Value <= p.threshold {
				reached = min(reached, r.At)
			}
		}
	}
	return evaluate.Line{
		"regret_mean": evaluate.Figure(best - p.optimum), "error_mean": evaluate.Figure(best),
		"seconds_used_mean": evaluate.Figure(used), "runs_mean": evaluate.Figure(len(s.Trials)),
		"seconds_to_threshold_mean": evaluate.Figure(min(reached, budget)), "reached_share": evaluate.Yes(reached <= budget),
	}, nil
}

// epoch is one of a recorded run. One that was recorded shorter than others stays as it is.
func (p *problem) epoch(t *searcher.Trial, n int) preview.Epoch {
	curve := p.curves[t.Candidate]
	e := curve[min(n, len(curve))-1]
	if n > len(curve) {
		e.Seconds = 0
	}
	return e
}
