package search

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/propose"
)

// Input is what to search.
type Input struct {
	Tables  []records.Table // trials, or curves whose last epochs count as trials
	Outcome string          // empty: each table's own, see Outcomes
	Budgets []int           // numbers of measurements; empty: 8, 10, 12, 16
	Methods []Method        // empty: all
	Seeds   int             // searches of each workload and method
	Seed    uint64
}

// Row is one method on one workload.
type Row struct {
	Workload string `json:"workload"`
	Machine  string `json:"machine"`
	Input    string `json:"input,omitempty"` // of the workload, where the data tell inputs apart
	Outcome  string `json:"outcome"`         // what was minimised
	Method   Method `json:"method"`
	Budget   int    `json:"budget"`   // measurements
	Settings int    `json:"settings"` // that were recorded, to choose from
	Seeds    int    `json:"seeds"`

	// LogRatioMean is the mean over the seeds of ln(outcome of the setting found / of
	// the best), each the mean over all recorded runs of the setting. Null: the method
	// does not apply, as a warm start without another workload.
	LogRatioMean *float64 `json:"log_ratio_mean"`

	// FoundOverOptimumMean is the mean over the seeds of that ratio itself.
	FoundOverOptimumMean *float64 `json:"found_over_optimum_mean"`

	// FailedShare is how many of the measurements brought no outcome.
	FailedShare *float64 `json:"failed_share"`
}

// Summary is the mean over the workloads of each file.
type Summary struct {
	Seed    uint64    `json:"seed"`
	Means   []Means   `json:"means"`
	LeftOut []LeftOut `json:"left_out"` // workloads with a single setting or without any outcome
}

// Means are one method's on one file.
type Means struct {
	Data                 string   `json:"data"` // the file
	Outcome              string   `json:"outcome"`
	Method               Method   `json:"method"`
	Budget               int      `json:"budget"`
	Problems             int      `json:"problems"` // workloads on a machine
	LogRatioMean         *float64 `json:"log_ratio_mean"`
	FoundOverOptimumMean *float64 `json:"found_over_optimum_mean"`
	OverRandom           *float64 `json:"over_random"` // log_ratio_mean over that of random; null where random is always right
}

// Report is the form of the output.
type Report = evaluate.Report[Row, Summary]

// task is one method on one problem; it fills the rows of its budgets.
type task struct {
	problem problem
	method  Method
	rows    []Row
}

// Run searches every workload of every table with every method. The same input gives
// the same report.
func Run(ctx context.Context, in Input, tell evaluate.Progress) (Report, error) {
	in, err := in.complete()
	if err != nil {
		return Report{}, err
	}
	out := Report{Command: "evaluate search", Summary: Summary{Seed: in.Seed, LeftOut: []LeftOut{}}}
	files := make([][]*task, len(in.Tables))
	for i, t := range in.Tables {
		out.Data = append(out.Data, t.File)
		problems, left, err := in.problems(t)
		if err != nil {
			return Report{}, err
		}
		out.Summary.LeftOut = append(out.Summary.LeftOut, left...)
		for _, p := range problems {
			for _, m := range in.Methods {
				files[i] = append(files[i], &task{problem: p, method: m})
			}
		}
	}
	all := slices.Concat(files...)
	err = evaluate.Each(ctx, len(all), tell, func(ctx context.Context, i int) (string, error) {
		what := strings.TrimSpace(all[i].problem.name()+" "+all[i].problem.machine) + ", " + string(all[i].method)
		return what, in.do(ctx, all[i])
	})
	if err != nil {
		return Report{}, err
	}
	for i, tasks := range files {
		var rows []Row
		for _, t := range tasks {
			rows = append(rows, t.rows...)
		}
		out.Rows = append(out.Rows, rows...)
		out.Summary.Means = append(out.Summary.Means, in.means(in.Tables[i].File, rows)...)
	}
	return out, nil
}

func (in Input) complete() (Input, error) {
	if len(in.Budgets) == 0 {
		in.Budgets = []int{8, 10, 12, 16}
	}
	in.Budgets = slices.Compact(slices.Sorted(slices.Values(in.Budgets)))
	if len(in.Methods) == 0 {
		in.Methods = Methods()
	}
	switch {
	case len(in.Tables) == 0:
		return in, fmt.Errorf("%w: no file: want trials or curves", records.ErrInvalid)
	case in.Budgets[0] < 1:
		return in, fmt.Errorf("%w: budget %d: want measurements, 1 at least", records.ErrInvalid, in.Budgets[0])
	case in.Seeds < 1:
		return in, fmt.Errorf("%w: %d seeds: want 1 at least", records.ErrInvalid, in.Seeds)
	case in.Outcome != "" && !slices.Contains(Outcomes(), in.Outcome):
		return in, fmt.Errorf("%w: outcome %q: want one of %s", records.ErrInvalid, in.Outcome, strings.Join(Outcomes(), ", "))
	}
	for _, m := range in.Methods {
		if !slices.Contains(Methods(), m) {
			return in, fmt.Errorf("%w: method %q: want one of %s", records.ErrInvalid, m, evaluate.Words(Methods()))
		}
	}
	return in, nil
}

func (in Input) problems(t records.Table) ([]problem, []LeftOut, error) {
	if order := defaults(t.Format); in.Outcome == "" && !slices.ContainsFunc(order, func(o string) bool { return holds(t, o) }) {
		return nil, nil, fmt.Errorf("%w: %s:1:1: no column of an outcome: want one of %s", records.ErrInvalid, t.File, strings.Join(columns(order), ", "))
	}
	if in.Outcome != "" && !holds(t, in.Outcome) {
		return nil, nil, fmt.Errorf("%w: %s:1:1: no column %q, which the outcome %s needs", records.ErrInvalid, t.File, column(in.Outcome), in.Outcome)
	}
	problems, left := problemsOf(t, in.Outcome)
	if len(problems) == 0 {
		return nil, nil, fmt.Errorf("%w: %s: no workload can be searched: of %s, %s", records.ErrInvalid, t.File, left[0].Workload, left[0].Why)
	}
	if slices.Contains(in.Methods, WarmStart) {
		if err := remember(problems); err != nil {
			return nil, nil, err
		}
	}
	return problems, left, nil
}

// do searches one problem with one method and all seeds.
func (in Input) do(ctx context.Context, t *task) error {
	p := t.problem
	sums := make([]found, len(in.Budgets))
	none := t.method == WarmStart && p.expected == nil
	for s := range in.Seeds {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("evaluate search: %w", err)
		}
		if none {
			break
		}
		got, err := in.search(p, t.method, s)
		if err != nil {
			return fmt.Errorf("%s with %s: %w", p.workload, t.method, err)
		}
		for i, g := range got {
			sums[i].log += g.log / float64(in.Seeds)
			sums[i].ratio += math.Exp(g.log) / float64(in.Seeds)
			sums[i].failed += g.failed / float64(in.Seeds)
		}
	}
	for i, b := range in.Budgets {
		row := Row{
			Workload: p.workload, Machine: p.machine, Input: p.input, Outcome: p.outcome, Method: t.method, Budget: b,
			Settings: len(p.settings), Seeds: in.Seeds,
		}
		if !none {
			row.LogRatioMean, row.FoundOverOptimumMean, row.FailedShare = &sums[i].log, &sums[i].ratio, &sums[i].failed
		}
		t.rows = append(t.rows, row)
	}
	return nil
}

// found is where a search stands.
type found struct {
	log    float64 // ln(outcome found / best)
	ratio  float64
	failed float64 // share of the measurements
}

// search is one search; it tells where it stands at each budget. A measurement brings
// one of the recorded runs of a setting, the same for every method of a seed.
func (in Input) search(p problem, m Method, seed int) ([]found, error) {
	name := fnv.New64a()
	_, _ = name.Write([]byte(p.name() + "\x00" + p.machine))
	luck := rand.New(rand.NewPCG(in.Seed+uint64(seed), name.Sum64()))
	drawn := make([]run, len(p.runs))
	for i, runs := range p.runs {
		drawn[i] = runs[luck.IntN(len(runs))]
	}
	_, _ = name.Write([]byte("\x00order")) // the methods draw alike, so that their difference is not luck
	out := make([]found, len(in.Budgets))
	var s propose.Method
	var trials []propose.Trial
	for i, budget := range in.Budgets {
		if s == nil || m.sized() {
			s, trials = p.method(m, budget, rand.New(rand.NewPCG(in.Seed+uint64(seed), name.Sum64()))), nil
		}
		for len(trials) < budget {
			at, err := s.Next(trials)
			if err != nil {
				return nil, err
			}
			if at < 0 {
				break
			}
			loss := drawn[at].log
			if drawn[at].failed {
				loss = math.NaN()
			}
			trials = append(trials, propose.Trial{At: at, Losses: []float64{loss}})
		}
		out[i] = p.judge(trials)
	}
	return out, nil
}

// judge compares the setting that was measured best with the truly best. Where all
// measurements failed, what was found is the worst.
func (p problem) judge(trials []propose.Trial) found {
	truth, least, failed := p.worst, math.Inf(1), 0.0
	for _, t := range trials {
		switch loss := t.Losses[0]; {
		case math.IsNaN(loss):
			failed++
		case loss < least:
			truth, least = p.truth[t.At], loss
		}
	}
	return found{log: truth - p.optimum, failed: failed / float64(max(len(trials), 1))}
}
