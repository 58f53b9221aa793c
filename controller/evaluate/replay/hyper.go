package replay

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
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
	return comparison{
		asked: in.Methods, methods: HyperMethods(), seeds: in.Seeds, seed: in.Seed,
		wants: cmp.Or(
			evaluate.Want(in.Seconds >= 0 && in.Runs > 0, "%g seconds, %g runs: want more than 0", in.Seconds, in.Runs),
			evaluate.Want(in.Workers >= 1, "%d workers: want 1 at least", in.Workers),
		),
		lacks: withoutOutcome, read: (*problem).readCurves, none: "no workload has two runs with an outcome", search: in.search,
		keys: []string{"method", "workers"}, figures: []string{"regret_mean", "error_mean", "reached_share"}, interval: "regret",
	}.report(ctx, "evaluate hyper", in.Curves, progress)
}

const (
	delay = 0.05 // seconds that a job takes to start, and to end
	equal = 5    // trials that begin every search of a seed
)

// search plays a search until a wall clock ends it or nothing is left to do: what it reached. Its seconds are simulated:
// the epochs of several workers come in the order in which they end.
func (in HyperInput) search(p *problem, m Method, seed uint64) ([]evaluate.Line, error) {
	out := evaluate.Line{"workers": in.Workers}
	if p.median == 0 {
		return []evaluate.Line{out}, nil
	}
	budget, rng := cmp.Or(in.Seconds, in.Runs*p.median), p.luck(seed, "")
	out["seconds"], out["threshold"] = evaluate.Figure(budget), evaluate.Figure(p.threshold)
	if m == ASHAWarm && p.alone {
		return []evaluate.Line{out}, nil
	}
	method := map[Method]tuning.SearchMethod{
		GaussianProcess: tuning.GP, ASHA: tuning.ASHA, ASHAStopping: tuning.ASHA, ASHAModel: tuning.ASHAGP, ASHAWarm: tuning.ASHAGP,
	}[m]
	plan := searcher.Plan{
		Search: tuning.Search{
			Method: cmp.Or(method, tuning.Random), Trials: len(p.settings), Parallel: in.Workers, Epochs: p.full, Eta: tuning.DefaultEta,
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
	return []evaluate.Line{out.With(evaluate.Line{
		"regret_mean": evaluate.Figure(best - p.optimum), "error_mean": evaluate.Figure(best),
		"seconds_used_mean": evaluate.Figure(used), "runs_mean": evaluate.Figure(len(s.Trials)),
		"seconds_to_threshold_mean": evaluate.Figure(min(reached, budget)), "reached_share": evaluate.Yes(reached <= budget),
	})}, nil
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

func withoutOutcome(t evaluate.Table) error {
	return evaluate.Want(t.Has("quality") || t.Has("loss"), "%s:1:1: no column quality or loss", t.File)
}

// readCurves reads the runs of a workload, and says why it cannot be searched. What counts
// is the error of the quality where a row has one, else the loss. Runs without seconds are
// left out where others have some.
func (p *problem) readCurves(_ evaluate.Format, left *evaluate.LeftOut) string {
	has := func(column string) bool {
		return slices.ContainsFunc(p.Rows, func(r evaluate.Row) bool { _, ok := r.Float(column); return ok })
	}
	column := "loss"
	whole, known := evaluate.Whole(p.Rows)
	if has("quality") && (known || !has("loss")) {
		if column = "quality"; !known {
			return unknownWhole
		}
	}
	lossAt := func(r evaluate.Row) (float64, bool) {
		v, ok := r.Float(column)
		if column == "quality" {
			v = 1 - v/whole
		}
		return v, ok
	}
	runs := evaluate.Runs(p.Rows)
	p.begin = math.Inf(-1)
	for i := range runs {
		runs[i] = evaluate.InOrder(runs[i])
		for _, r := range runs[i] {
			if v, ok := lossAt(r); ok {
				p.begin = max(p.begin, v)
				break
			}
		}
	}
	p.cadence = evaluate.Cadence(runs, column)
	timed := slices.ContainsFunc(runs, func(run []evaluate.Row) bool { _, why := secondsOf(run); return why == "" })
	var totals, bests []float64
	for _, run := range runs {
		seconds, why := secondsOf(run)
		if why != "" && timed {
			left.Add(p.Group, run, why)
			continue
		}
		last, broke := evaluate.Last(run, column, p.cadence)
		var curve []preview.Epoch
		least := math.Inf(1)
		total, loss := 0.0, p.begin
		for i, r := range run {
			if v, ok := lossAt(r); ok {
				loss = v // else it has that of the epoch before
			}
			e := preview.Epoch{Value: loss}
			if seconds != nil {
				e.Seconds = seconds[i]
			}
			least = min(least, loss)
			total += e.Seconds
			if broke && i > last {
				e.Value = math.NaN()
			}
			if curve = append(curve, e); math.IsNaN(e.Value) {
				break
			}
		}
		if v, ok := run[len(curve)-1].Float("seconds"); ok {
			total = v
		}
		bests = append(bests, least)
		p.settings, p.curves, p.full = append(p.settings, run[0].Knobs), append(p.curves, curve), max(p.full, len(curve))
		totals = append(totals, total)
	}
	ends := tuning.Each(p.curves, func(c []preview.Epoch) float64 { return c[len(c)-1].Value })
	ended := slices.DeleteFunc(slices.Clone(ends), math.IsNaN)
	if len(ended) == 0 {
		return "no run ends with an outcome"
	}
	slices.Sort(bests)
	p.optimum, p.threshold = bests[0], bests[len(bests)/20]
	if timed {
		slices.Sort(totals)
		p.median = totals[len(totals)/2]
	}
	p.worst = max(0, slices.Max(ended))
	p.truth = tuning.Each(ends, func(loss float64) float64 { // broken runs end with the worst
		if math.IsNaN(loss) {
			loss = p.worst
		}
		return math.Log(max(loss, leastLoss))
	})
	if len(p.curves) == 1 {
		return "it has a single run"
	}
	return ""
}

// secondsOf are those of each epoch of a run in order. Where some are missing, the time
// between is shared among the epochs, and the last of them take as long as those before.
// The words say why they are unknown.
func secondsOf(run []evaluate.Row) ([]float64, string) {
	out := make([]float64, len(run))
	before, from := 0.0, 0
	for i, r := range run {
		now, ok := r.Float("seconds")
		if !ok {
			continue
		}
		if now < before {
			return nil, fmt.Sprintf("%g seconds after %g: want seconds since the start of a run, which never fall", now, before)
		}
		for j := from; j <= i; j++ {
			out[j] = (now - before) / float64(i+1-from)
		}
		before, from = now, i+1
	}
	if from == 0 || before == 0 {
		return nil, "no seconds"
	}
	for j := from; j < len(run); j++ {
		out[j] = before / float64(from)
	}
	return out, ""
}
