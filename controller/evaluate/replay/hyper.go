package replay

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/search/propose"
)

// HyperInput is what Hyper replays: learning curves.
type HyperInput struct {
	records.Set
	Seconds float64  // for each search; 0: as many as Runs median full runs of the workload
	Runs    float64  // 0: 10
	Methods []Method // empty: all
	Seeds   int      // searches of each workload and method
	Seed    uint64
}

// HyperRow is one method on one workload.
type HyperRow struct {
	Workload        string        `json:"workload" about:"name, as in the data" col:"WORKLOAD"`
	Machine         string        `json:"machine" about:"name, as in the data" col:"MACHINE"`
	Input           string        `json:"input,omitempty" about:"which input of the workload, where the data tell inputs apart" col:"INPUT"`
	Method          Method        `json:"method" about:"way to search" col:"METHOD"`
	Seconds         result.Figure `json:"seconds" about:"seconds that the search might use; null: the curves have no seconds" col:"SECONDS|0"`
	Seeds           int           `json:"seeds" about:"searches"`
	RegretMean      result.Figure `json:"regret_mean" about:"mean over the seeds of the least error reached less the least error recorded; null: the curves have no seconds, or the method does not apply" col:"REGRET|4"`
	SecondsUsedMean result.Figure `json:"seconds_used_mean" about:"of the seconds, how many were spent" col:"USED|0"`
	RunsMean        result.Figure `json:"runs_mean" about:"runs begun, in the mean" col:"RUNS|1"`
}

// HyperMeans are one method's on one file.
type HyperMeans struct {
	Data       string        `json:"data" about:"the file" col:"FILE"`
	Method     Method        `json:"method" about:"way to search" col:"METHOD"`
	Problems   int           `json:"problems" about:"workloads on machines" col:"PROBLEMS"`
	RegretMean result.Figure `json:"regret_mean" about:"mean over its workloads" col:"REGRET|4"`
	OverRandom result.Figure `json:"over_random" about:"regret_mean over that of random" col:"OVER RANDOM|2"`
}

// HyperSummary is the mean over the workloads of each file.
type HyperSummary struct {
	Seed    uint64           `json:"seed" about:"of everything random"`
	Means   []HyperMeans     `json:"means" about:"one entry for each file and method"`
	LeftOut []result.LeftOut `json:"left_out" about:"workloads with a single run or without any outcome, and runs without seconds"`
}

// HyperReport is the result of Hyper.
type HyperReport = result.Report[HyperRow, HyperSummary]

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
func Hyper(ctx context.Context, in HyperInput, progress result.Progress) (HyperReport, error) {
	in.Runs = cmp.Or(in.Runs, 10)
	var err error
	switch in.Methods, err = chosen(in.Methods, HyperMethods()); {
	case err != nil:
		return HyperReport{}, err
	case len(in.Curves) == 0:
		return HyperReport{}, result.Invalid("no file: want curves")
	case !(in.Seconds >= 0) || !(in.Runs > 0):
		return HyperReport{}, result.Invalid("%g seconds, %g runs: want more than 0", in.Seconds, in.Runs)
	case in.Seeds < 1:
		return HyperReport{}, result.Invalid("%d seeds: want 1 at least", in.Seeds)
	}
	out := HyperReport{Command: "evaluate hyper", Data: in.Files(), Summary: HyperSummary{Seed: in.Seed, Means: []HyperMeans{}, LeftOut: []result.LeftOut{}}}
	var files [][]*problem
	for _, t := range in.Curves {
		problems, left, err := curvesToSearch(t)
		if err != nil {
			return HyperReport{}, err
		}
		files, out.Summary.LeftOut = append(files, problems), append(out.Summary.LeftOut, left...)
	}
	rows, err := searches(ctx, progress, files, in.Methods, in.row)
	if err != nil {
		return HyperReport{}, fmt.Errorf("evaluate hyper: %w", err)
	}
	for i, of := range rows {
		out.Rows = append(out.Rows, of...)
		out.Summary.Means = append(out.Summary.Means, hyperMeans(out.Data[i], of)...)
	}
	return out, nil
}

func (in HyperInput) row(ctx context.Context, p *problem, m Method) ([]HyperRow, error) {
	unknown := result.Unknown()
	row := HyperRow{
		Workload: p.Workload, Machine: p.Machine, Input: p.Input, Method: m, Seeds: in.Seeds,
		Seconds: unknown, RegretMean: unknown, SecondsUsedMean: unknown, RunsMean: unknown,
	}
	if p.median == 0 {
		return []HyperRow{row}, nil
	}
	seconds := in.Seconds
	if seconds == 0 {
		seconds = in.Runs * p.median
	}
	row.Seconds = result.Figure(seconds)
	if m == ASHAWarm && p.expected == nil {
		return []HyperRow{row}, nil
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(p.Name() + "\x00" + p.Machine)) // every method has the same luck
	rows := make([]HyperRow, in.Seeds)
	for s := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := p.climb(m, seconds, rand.New(rand.NewPCG(in.Seed+uint64(s), name.Sum64()))) //nolint:gosec // an index
		if err != nil {
			return nil, fmt.Errorf("%s with %s: %w", p.Workload, m, err)
		}
		rows[s] = row
		rows[s].RegretMean = result.Figure(max(r.loss-p.optimum, 0))
		rows[s].SecondsUsedMean, rows[s].RunsMean = result.Figure(r.seconds), result.Figure(len(r.trials))
	}
	return []HyperRow{result.Average(rows)}, nil
}

// hyperMeans sums up the rows of one file.
func hyperMeans(file string, rows []HyperRow) []HyperMeans {
	var out []HyperMeans
	random := result.Figure(0)
	for _, same := range records.Split(rows, func(r HyperRow) string { return r.Method }) {
		mean := HyperMeans{Data: file, Method: same[0].Method, RegretMean: result.Average(same).RegretMean}
		for _, r := range same {
			if r.RegretMean.Known() {
				mean.Problems++
			}
		}
		if mean.Method == Random {
			random = mean.RegretMean
		}
		out = append(out, mean)
	}
	for i, m := range out {
		out[i].OverRandom = over(m.RegretMean, random)
	}
	return out
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

// climbed is how far a search came.
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
		r.loss = slices.MaxFunc(p.curves, func(a, b []epoch) int { return compareLoss(a[0], b[0]) })[0].loss
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
