package replay

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/search/propose"
)

// SearchInput is what Search replays: the settings of trials, and of curves the settings
// of runs, whose last epochs count as trials.
type SearchInput struct {
	records.Set
	Outcome string   // empty: each table's own, see Outcomes
	Budgets []int    // numbers of measurements; empty: 8, 10, 12, 16
	Methods []Method // empty: all
	Seeds   int      // searches of each workload and method
	Seed    uint64
}

// SearchRow is one method on one workload.
type SearchRow struct {
	Workload             string        `json:"workload" about:"name, as in the data" col:"WORKLOAD"`
	Machine              string        `json:"machine" about:"name, as in the data" col:"MACHINE"`
	Input                string        `json:"input,omitempty" about:"which input of the workload, where the data tell inputs apart" col:"INPUT"`
	Outcome              string        `json:"outcome" about:"what was minimised" col:"OUTCOME"`
	Method               Method        `json:"method" about:"way to search" col:"METHOD"`
	Budget               int           `json:"budget" about:"measurements" col:"BUDGET"`
	Settings             int           `json:"settings" about:"recorded settings to choose from" col:"SETTINGS"`
	Seeds                int           `json:"seeds" about:"searches"`
	LogRatioMean         result.Figure `json:"log_ratio_mean" about:"mean over the seeds of ln(outcome of the setting found over that of the best), each the mean over all recorded runs of the setting; null: the method does not apply, as a warm start without another workload" col:"LOG RATIO|4"`
	FoundOverOptimumMean result.Figure `json:"found_over_optimum_mean" about:"mean over the seeds of that ratio itself" col:"FOUND/BEST"`
	FailedShare          result.Figure `json:"failed_share" about:"share of the measurements that brought no outcome" col:"FAILED|2"`
}

// SearchSummary is the mean over the workloads of each file.
type SearchSummary struct {
	Seed    uint64           `json:"seed" about:"of everything random"`
	Means   []SearchMeans    `json:"means" about:"one entry for each file, method and budget"`
	LeftOut []result.LeftOut `json:"left_out" about:"workloads with a single setting or without any outcome"`
}

// SearchMeans are one method's on one file.
type SearchMeans struct {
	Data                 string        `json:"data" about:"the file" col:"FILE"`
	Outcome              string        `json:"outcome" about:"what was minimised" col:"OUTCOME"`
	Method               Method        `json:"method" about:"way to search" col:"METHOD"`
	Budget               int           `json:"budget" about:"measurements" col:"BUDGET"`
	Problems             int           `json:"problems" about:"workloads on machines" col:"PROBLEMS"`
	LogRatioMean         result.Figure `json:"log_ratio_mean" about:"mean over its workloads" col:"LOG RATIO|4"`
	FoundOverOptimumMean result.Figure `json:"found_over_optimum_mean" about:"mean over its workloads" col:"FOUND/BEST"`
	OverRandom           result.Figure `json:"over_random" about:"log_ratio_mean over that of random; null where random is always right" col:"OVER RANDOM|2"`
}

// SearchReport is the result of Search.
type SearchReport = result.Report[SearchRow, SearchSummary]

// SearchMethods lists the methods of Search. WarmStart is GaussianProcess with the other
// workloads of the same file as its history.
func SearchMethods() []Method {
	return []Method{Random, Grid, LatinHypercube, GaussianProcess, WarmStart, Bandit}
}

// Search searches every workload of every table with every method.
func Search(ctx context.Context, in SearchInput, progress result.Progress) (SearchReport, error) {
	in, err := in.complete()
	if err != nil {
		return SearchReport{}, err
	}
	out := SearchReport{Command: "evaluate search", Data: in.Files(), Summary: SearchSummary{Seed: in.Seed, Means: []SearchMeans{}, LeftOut: []result.LeftOut{}}}
	var files [][]*problem
	for _, t := range slices.Concat(in.Trials, in.Curves) {
		problems, left, err := in.problems(t)
		if err != nil {
			return SearchReport{}, err
		}
		files, out.Summary.LeftOut = append(files, problems), append(out.Summary.LeftOut, left...)
	}
	rows, err := searches(ctx, progress, files, in.Methods, func(ctx context.Context, p *problem, m Method) ([]SearchRow, error) { return in.rows(ctx, p, m) })
	if err != nil {
		return SearchReport{}, fmt.Errorf("evaluate search: %w", err)
	}
	for i, of := range rows {
		out.Rows = append(out.Rows, of...)
		out.Summary.Means = append(out.Summary.Means, searchMeans(out.Data[i], of)...)
	}
	return out, nil
}

func (in SearchInput) complete() (SearchInput, error) {
	if len(in.Budgets) == 0 {
		in.Budgets = []int{8, 10, 12, 16}
	}
	in.Budgets = slices.Compact(slices.Sorted(slices.Values(in.Budgets)))
	var err error
	switch in.Methods, err = chosen(in.Methods, SearchMethods()); {
	case err != nil:
		return in, err
	case len(in.Trials)+len(in.Curves) == 0:
		return in, result.Invalid("no file: want trials or curves")
	case in.Budgets[0] < 1:
		return in, result.Invalid("budget %d: want measurements, 1 at least", in.Budgets[0])
	case in.Seeds < 1:
		return in, result.Invalid("%d seeds: want 1 at least", in.Seeds)
	case in.Outcome != "" && !slices.Contains(Outcomes(), in.Outcome):
		return in, result.Invalid("outcome %q: want one of %s", in.Outcome, strings.Join(Outcomes(), ", "))
	}
	return in, nil
}

// rows search one problem with one method and all seeds: a row for each budget.
func (in SearchInput) rows(ctx context.Context, p *problem, m Method) ([]SearchRow, error) {
	applies := m != WarmStart || p.expected != nil
	found := make([][]SearchRow, len(in.Budgets)) // by budget and seed
	for i, budget := range in.Budgets {
		found[i] = make([]SearchRow, in.Seeds)
		for seed := range found[i] {
			found[i][seed] = SearchRow{
				Workload: p.Workload, Machine: p.Machine, Input: p.Input, Outcome: p.outcome, Method: m, Budget: budget, Settings: len(p.settings), Seeds: in.Seeds,
				LogRatioMean: result.Unknown(), FoundOverOptimumMean: result.Unknown(), FailedShare: result.Unknown(),
			}
		}
	}
	for seed := range in.Seeds {
		if err := ctx.Err(); err != nil || !applies {
			break
		}
		if err := in.search(p, m, seed, found); err != nil {
			return nil, fmt.Errorf("%s with %s: %w", p.Name(), m, err)
		}
	}
	out := make([]SearchRow, len(found))
	for i, rows := range found {
		out[i] = result.Average(rows)
	}
	return out, ctx.Err()
}

// search is one search; it notes what was found at each budget. A measurement brings one
// of the recorded runs of a setting, the same for every method of a seed.
func (in SearchInput) search(p *problem, m Method, seed int, found [][]SearchRow) error {
	name := fnv.New64a()
	_, _ = name.Write([]byte(p.Name() + "\x00" + p.Machine))          // never fails
	luck := rand.New(rand.NewPCG(in.Seed+uint64(seed), name.Sum64())) //nolint:gosec // an index
	drawn := make([]float64, len(p.runs))
	for i, runs := range p.runs {
		drawn[i] = runs[luck.IntN(len(runs))]
	}
	_, _ = name.Write([]byte("\x00order")) // the methods draw alike, so that their difference is not luck
	var s propose.Method
	var trials []propose.Trial
	for i, budget := range in.Budgets {
		if s == nil || m == Grid || m == LatinHypercube { // these have to know the budget beforehand
			s, trials = p.method(m, budget, rand.New(rand.NewPCG(in.Seed+uint64(seed), name.Sum64()))), nil //nolint:gosec // an index
		}
		for len(trials) < budget {
			at, err := s.Next(trials)
			if err != nil {
				return err
			}
			if at < 0 {
				break
			}
			trials = append(trials, propose.Trial{At: at, Losses: []float64{drawn[at]}})
		}
		p.judge(trials, &found[i][seed])
	}
	return nil
}

// judge compares the setting that was measured best with the truly best. Where all
// measurements failed, what was found is the worst.
func (p *problem) judge(trials []propose.Trial, row *SearchRow) {
	truth, least, failed := p.worst, math.Inf(1), 0
	for _, t := range trials {
		switch loss := t.Losses[0]; {
		case math.IsNaN(loss):
			failed++
		case loss < least:
			truth, least = p.truth[t.At], loss
		}
	}
	row.LogRatioMean = result.Figure(truth - slices.Min(p.truth))
	row.FoundOverOptimumMean = result.Figure(math.Exp(float64(row.LogRatioMean)))
	row.FailedShare = result.Share(failed, max(len(trials), 1))
}

// searchMeans sums up the rows of one file, those of each outcome by themselves.
func searchMeans(file string, rows []SearchRow) []SearchMeans {
	var out []SearchMeans
	for _, of := range records.Split(rows, func(r SearchRow) string { return r.Outcome }) {
		random, from := map[int]result.Figure{}, len(out)
		for _, same := range records.Split(of, func(r SearchRow) string { return fmt.Sprint(r.Method, r.Budget) }) {
			all := result.Average(same)
			mean := SearchMeans{
				Data: file, Outcome: all.Outcome, Method: all.Method, Budget: all.Budget,
				LogRatioMean: all.LogRatioMean, FoundOverOptimumMean: all.FoundOverOptimumMean,
			}
			for _, r := range same {
				if r.LogRatioMean.Known() {
					mean.Problems++
				}
			}
			if all.Method == Random {
				random[all.Budget] = all.LogRatioMean
			}
			out = append(out, mean)
		}
		for i, m := range out[from:] {
			out[from+i].OverRandom = over(m.LogRatioMean, random[m.Budget])
		}
	}
	return out
}

// Outcomes lists what can be minimised. Error is 1 - quality; speed, in samples or
// iterations per second, is turned around.
func Outcomes() []string {
	return []string{"joules", "seconds", "edp", "epoch_seconds", "samples_per_second", "error", "loss"}
}

// usualOutcomes are the outcomes looked for in a table, the likeliest to matter first.
func usualOutcomes(f records.Format) []string {
	if f == records.Curves {
		return []string{"error", "loss", "seconds"}
	}
	return []string{"joules", "seconds", "samples_per_second", "epoch_seconds", "error", "loss"}
}

// outcomeColumn is where an outcome stands.
func outcomeColumn(outcome string) string {
	switch outcome {
	case "error":
		return "quality"
	case "edp":
		return "joules"
	}
	return outcome
}

// problems splits a table into workloads that can be searched.
func (in SearchInput) problems(t records.Table) (out []*problem, left []result.LeftOut, err error) {
	has := func(o string) bool { return t.Has(outcomeColumn(o)) && (o != "edp" || t.Has("seconds")) }
	if order := usualOutcomes(t.Format); in.Outcome == "" && !slices.ContainsFunc(order, has) {
		return nil, nil, result.Invalid("%s:1:1: no column of an outcome: want one of %s", t.File, strings.Join(order, ", "))
	}
	if in.Outcome != "" && !has(in.Outcome) {
		return nil, nil, result.Invalid("%s:1:1: no column %q, which the outcome %s needs", t.File, outcomeColumn(in.Outcome), in.Outcome)
	}
	for _, g := range t.Jobs() {
		p := &problem{Group: g}
		why := p.fill(t.Format, in.Outcome)
		if why == "" {
			out = append(out, p)
			continue
		}
		left = append(left, result.LeftOut{Data: t.File, Workload: g.Name(), Machine: g.Machine, Why: why})
	}
	if len(out) == 0 {
		return nil, nil, result.Invalid("%s: no workload can be searched: of %s, %s", t.File, left[0].Workload, left[0].Why)
	}
	if slices.Contains(in.Methods, WarmStart) {
		return out, left, remember(out)
	}
	return out, left, nil
}

// unknownWhole is why nothing can be said of an error.
const unknownWhole = "a quality above 100 is neither a share nor a percentage: what is perfect is unknown"

// fill sorts the runs of a workload by their settings, and says why it cannot be searched.
// An outcome that is empty is the first of the usual ones of which a run has a value; an
// error comes last where it is unknown what quality is perfect.
func (p *problem) fill(f records.Format, outcome string) (why string) {
	whole, known := records.Whole(p.Rows)
	if !known {
		whole = math.Inf(1)
	}
	if outcome == "" {
		order := usualOutcomes(f)
		if !known {
			order = append(slices.DeleteFunc(order, func(o string) bool { return o == "error" }), "error")
		}
		for _, o := range order {
			if slices.ContainsFunc(ends(f, p.Rows, o), func(r records.Row) bool { return !math.IsNaN(lossOf(r, o, whole)) }) {
				outcome = o
				break
			}
		}
	}
	if p.outcome = outcome; outcome == "error" && !known {
		return unknownWhole
	}
	p.worst = math.Inf(-1)
	for _, rows := range records.Split(ends(f, p.Rows, outcome), records.Setting) {
		losses := make([]float64, len(rows))
		for i, r := range rows {
			if losses[i] = lossOf(r, outcome, whole); !math.IsNaN(losses[i]) {
				p.worst = max(p.worst, losses[i])
			}
		}
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
	p.candidates = propose.Of(p.settings)
	return ""
}

// lossOf is the logarithm of a row's outcome, NaN where the run failed or has none. whole
// is the quality that is perfect.
func lossOf(r records.Row, outcome string, whole float64) float64 {
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

// ends are the rows that say what became of runs: of trials all of them, of curves the
// last epochs that have the outcome; the last of all where the run broke before.
func ends(f records.Format, rows []records.Row, outcome string) []records.Row {
	if f != records.Curves {
		return rows
	}
	runs := records.Runs(rows)
	for i := range runs {
		runs[i] = records.InOrder(runs[i])
	}
	cadence := records.Cadence(runs, outcomeColumn(outcome))
	var out []records.Row
	for _, r := range runs {
		last, broke := records.Last(r, outcomeColumn(outcome), cadence)
		if broke {
			last = len(r) - 1
		}
		out = append(out, r[last])
	}
	return out
}
