package replay

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

// SearchInput is what Search replays: the settings of trials, and of curves the settings
// of runs, whose last epochs count as trials.
type SearchInput struct {
	evaluate.Set
	Outcome string   // empty: each table's own, see Outcomes
	Budgets []int    // numbers of measurements; empty: 8, 10, 12, 16
	Methods []Method // empty: all
	Seeds   int      // searches of each workload and method
	Seed    uint64
}

// SearchMethods lists the methods of Search. WarmStart is GaussianProcess with the other
// workloads of the same file as its history.
func SearchMethods() []Method {
	return []Method{Random, Grid, LatinHypercube, GaussianProcess, WarmStart}
}

// Search searches every workload of every table with every method.
func Search(ctx context.Context, in SearchInput, progress evaluate.Progress) (evaluate.Report, error) {
	if len(in.Budgets) == 0 {
		in.Budgets = []int{8, 10, 12, 16}
	}
	in.Budgets = slices.Compact(slices.Sorted(slices.Values(in.Budgets)))
	return comparison{
		asked: in.Methods, methods: SearchMethods(), seeds: in.Seeds, seed: in.Seed,
		wants: cmp.Or(
			evaluate.Want(len(in.Trials)+len(in.Curves) > 0, "no file: want trials or curves"),
			evaluate.Want(in.Budgets[0] >= 1, "budget %d: want measurements, 1 at least", in.Budgets[0]),
			evaluate.Want(in.Outcome == "" || slices.Contains(Outcomes(), in.Outcome), "outcome %q: want one of %s", in.Outcome, strings.Join(Outcomes(), ", ")),
		),
		lacks: in.lacks, read: in.read, none: "no workload can be searched", search: in.search,
		keys: []string{"method", "outcome", "budget"}, figures: []string{"log_ratio_mean", "found_over_optimum_mean"},
	}.report(ctx, "evaluate search", slices.Concat(in.Trials, in.Curves), progress)
}

// search is one search: what it found at each budget. A measurement brings one of the
// recorded runs of a setting, the same for every method of a seed.
func (in SearchInput) search(p *problem, m Method, seed uint64) ([]evaluate.Line, error) {
	out := tuning.Each(in.Budgets, func(budget int) evaluate.Line {
		return evaluate.Line{"outcome": p.outcome, "budget": budget, "settings": len(p.settings)}
	})
	if m == WarmStart && p.expected == nil {
		return out, nil // it does not apply
	}
	luck := p.luck(seed, "")
	drawn := tuning.Each(p.runs, func(runs []float64) float64 { return runs[luck.IntN(len(runs))] })
	var s propose.Method
	var trials []propose.Trial
	for i, budget := range in.Budgets {
		if s == nil || m == Grid || m == LatinHypercube { // these have to know the budget beforehand
			s, trials = p.method(m, budget, p.luck(seed, "\x00order")), nil // the methods draw alike, so that their difference is not luck
		}
		for len(trials) < budget {
			at, err := s.Next(trials)
			if err != nil {
				return nil, err
			}
			if at < 0 {
				break
			}
			trials = append(trials, propose.Trial{At: at, Losses: []float64{drawn[at]}})
		}
		out[i] = out[i].With(p.judge(trials))
	}
	return out, nil
}

// judge compares the setting that was measured best with the truly best. Where all
// measurements failed, what was found is the worst.
func (p *problem) judge(trials []propose.Trial) evaluate.Line {
	truth, least, failed := p.worst, math.Inf(1), 0
	for _, t := range trials {
		switch loss := t.Losses[0]; {
		case math.IsNaN(loss):
			failed++
		case loss < least:
			truth, least = p.truth[t.At], loss
		}
	}
	ratio := truth - slices.Min(p.truth)
	return evaluate.Line{
		"log_ratio_mean": evaluate.Figure(ratio), "found_over_optimum_mean": evaluate.Figure(math.Exp(ratio)),
		"failed_share": evaluate.Share(failed, max(len(trials), 1)),
	}
}

// Outcomes lists what can be minimised. Error is 1 - quality; speed, in samples or
// iterations per second, is turned around.
func Outcomes() []string {
	return []string{"joules", "seconds", "edp", "epoch_seconds", "samples_per_second", "error", "loss"}
}

// usualOutcomes are the outcomes looked for in a table, the likeliest to matter first.
func usualOutcomes(f evaluate.Format) []string {
	if f == evaluate.Curves {
		return []string{"error", "loss", "seconds"}
	}
	return []string{"joules", "seconds", "samples_per_second", "epoch_seconds", "error", "loss"}
}

func outcomeColumn(outcome string) string {
	switch outcome {
	case "error":
		return "quality"
	case "edp":
		return "joules"
	}
	return outcome
}

func (in SearchInput) lacks(t evaluate.Table) error {
	has := func(o string) bool { return t.Has(outcomeColumn(o)) && (o != "edp" || t.Has("seconds")) }
	if in.Outcome != "" {
		return evaluate.Want(has(in.Outcome), "%s:1:1: no column %q, which the outcome %s needs", t.File, outcomeColumn(in.Outcome), in.Outcome)
	}
	order := usualOutcomes(t.Format)
	return evaluate.Want(slices.ContainsFunc(order, has), "%s:1:1: no column of an outcome: want one of %s", t.File, strings.Join(order, ", "))
}

// unknownWhole says why an error cannot be judged.
const unknownWhole = "a quality above 100 is neither a share nor a percentage: what is perfect is unknown"

// read sorts the runs of a workload by their settings, and says why it cannot be searched.
// An empty outcome is the first of the usual ones for which a run has a value; an error
// comes last where the perfect quality is unknown.
func (in SearchInput) read(p *problem, f evaluate.Format, _ *evaluate.LeftOut) (why string) {
	outcome := in.Outcome
	whole, known := evaluate.Whole(p.Rows)
	if !known {
		whole = math.Inf(1)
	}
	if outcome == "" {
		order := usualOutcomes(f)
		if !known {
			order = append(slices.DeleteFunc(order, func(o string) bool { return o == "error" }), "error")
		}
		outcome, _ = tuning.First(order, func(o string) bool {
			return slices.ContainsFunc(ends(f, p.Rows, o), func(r evaluate.Row) bool { return !math.IsNaN(lossOf(r, o, whole)) })
		})
	}
	if p.outcome = outcome; outcome == "error" && !known {
		return unknownWhole
	}
	p.worst = math.Inf(-1)
	for _, rows := range evaluate.Split(ends(f, p.Rows, outcome), evaluate.Setting) {
		losses := tuning.Each(rows, func(r evaluate.Row) float64 { return lossOf(r, outcome, whole) })
		_, worst := evaluate.Range(losses)
		p.worst = max(p.worst, float64(worst))
		p.settings, p.runs = append(p.settings, rows[0].Knobs), append(p.runs, losses)
	}
	switch {
	case math.IsInf(p.worst, -1):
		return "no run has an outcome"
	case len(p.settings) < 2:
		return "it has a single setting"
	}
	// What is true of a setting is the mean over its runs, where a failed run costs as much
	// as the worst run of the workload.
	for _, runs := range p.runs {
		sum := 0.0
		for _, loss := range runs {
			if math.IsNaN(loss) {
				loss = p.worst
			}
			sum += math.Exp(loss-p.worst) / float64(len(runs))
		}
		p.truth = append(p.truth, math.Log(sum)+p.worst)
	}
	return ""
}

// lossOf is the logarithm of a row's outcome, NaN where the run failed or has none. whole
// is the quality that is perfect.
func lossOf(r evaluate.Row, outcome string, whole float64) float64 {
	v, ok := r.Outcome(outcomeColumn(outcome))
	switch outcome {
	case "error", "loss":
		v, ok = r.Float(outcomeColumn(outcome))
		if outcome == "error" {
			v = 1 - v/whole
		}
		if v >= 0 {
			v = max(v, leastLoss)
		}
	case "samples_per_second":
		v = 1 / v
	case "edp":
		s, has := r.Outcome("seconds")
		v, ok = v*s, ok && has
	}
	if !ok || r.Failed() {
		return math.NaN()
	}
	return math.Log(orNaN(v))
}

// ends returns the rows that hold the outcome of runs: all rows of trials, and of curves
// the last epoch that has the outcome, or the last of all where the run broke before.
func ends(f evaluate.Format, rows []evaluate.Row, outcome string) []evaluate.Row {
	if f != evaluate.Curves {
		return rows
	}
	runs := tuning.Each(evaluate.Runs(rows), evaluate.InOrder)
	cadence := evaluate.Cadence(runs, outcomeColumn(outcome))
	var out []evaluate.Row
	for _, r := range runs {
		last, broke := evaluate.Last(r, outcomeColumn(outcome), cadence)
		if broke {
			last = len(r) - 1
		}
		out = append(out, r[last])
	}
	return out
}
