package hyper

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
)

// Input is what to search.
type Input struct {
	Tables  []records.Table // curves
	Seconds float64         // for each search; 0: as many as Runs median full runs of the workload
	Runs    float64         // 0: 10
	Methods []Method        // empty: all
	Seeds   int             // searches of each workload and method
	Seed    uint64
}

// Row is one method on one workload.
type Row struct {
	Workload string   `json:"workload"`
	Machine  string   `json:"machine"`
	Input    string   `json:"input,omitempty"` // of the workload, where the data tell inputs apart
	Method   Method   `json:"method"`
	Seconds  *float64 `json:"seconds"` // that the search might use; null: the curves have no seconds
	Seeds    int      `json:"seeds"`

	// RegretMean is the mean over the seeds of the least error reached less the least
	// error recorded. Null: the curves have no seconds, or the method does not apply.
	RegretMean *float64 `json:"regret_mean"`

	SecondsUsedMean *float64 `json:"seconds_used_mean"`
	RunsMean        *float64 `json:"runs_mean"` // begun
}

// Means are one method's on one file.
type Means struct {
	Data       string   `json:"data"` // the file
	Method     Method   `json:"method"`
	Problems   int      `json:"problems"` // workloads on a machine
	RegretMean *float64 `json:"regret_mean"`
	OverRandom *float64 `json:"over_random"` // regret_mean over that of random
}

// Summary is the mean over the workloads of each file.
type Summary struct {
	Seed    uint64    `json:"seed"`
	Means   []Means   `json:"means"`
	LeftOut []LeftOut `json:"left_out"` // workloads with a single run or without any outcome
}

// Report is the form of the output.
type Report = evaluate.Report[Row, Summary]

type task struct {
	problem problem
	method  Method
	row     Row
}

// Run searches every workload of every table with every method. The same input gives
// the same report.
func Run(ctx context.Context, in Input, tell evaluate.Progress) (Report, error) {
	if len(in.Methods) == 0 {
		in.Methods = Methods()
	}
	if in.Runs == 0 {
		in.Runs = 10
	}
	if err := in.check(); err != nil {
		return Report{}, err
	}
	out := Report{Command: "evaluate hyper", Summary: Summary{Seed: in.Seed, LeftOut: []LeftOut{}}}
	var all []*task
	files := make([][]*task, len(in.Tables))
	for i, t := range in.Tables {
		out.Data = append(out.Data, t.File)
		problems, left, err := problemsOf(t)
		if err != nil {
			return Report{}, err
		}
		out.Summary.LeftOut = append(out.Summary.LeftOut, left...)
		for _, p := range problems {
			for _, m := range in.Methods {
				files[i] = append(files[i], &task{problem: p, method: m})
			}
		}
		all = append(all, files[i]...)
	}
	err := evaluate.Each(ctx, len(all), tell, func(ctx context.Context, i int) (string, error) {
		return all[i].problem.name() + ", " + string(all[i].method), in.do(ctx, all[i])
	})
	if err != nil {
		return Report{}, err
	}
	for i, tasks := range files {
		for _, t := range tasks {
			out.Rows = append(out.Rows, t.row)
		}
		out.Summary.Means = append(out.Summary.Means, in.means(in.Tables[i].File, tasks)...)
	}
	return out, nil
}

func (in Input) check() error {
	switch {
	case len(in.Tables) == 0:
		return fmt.Errorf("%w: no file: want curves", records.ErrInvalid)
	case in.Seconds < 0 || in.Runs < 0:
		return fmt.Errorf("%w: %g seconds, %g runs: want more than 0", records.ErrInvalid, in.Seconds, in.Runs)
	case in.Seeds < 1:
		return fmt.Errorf("%w: %d seeds: want 1 at least", records.ErrInvalid, in.Seeds)
	}
	for _, m := range in.Methods {
		if !slices.Contains(Methods(), m) {
			return fmt.Errorf("%w: method %q: want one of %s", records.ErrInvalid, m, evaluate.Words(Methods()))
		}
	}
	return nil
}

func (in Input) do(ctx context.Context, t *task) error {
	p := t.problem
	t.row = Row{Workload: p.workload, Machine: p.machine, Input: p.input, Method: t.method, Seeds: in.Seeds}
	if p.median == 0 {
		return nil
	}
	seconds := in.Seconds
	if seconds == 0 {
		seconds = in.Runs * p.median
	}
	t.row.Seconds = &seconds
	if t.method == ASHAWarm && p.expected == nil {
		return nil
	}
	name := fnv.New64a()
	_, _ = name.Write([]byte(p.name() + "\x00" + p.machine)) // every method has the same luck
	var regret, used, runs float64
	for s := range in.Seeds {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("evaluate hyper: %w", err)
		}
		r, err := p.search(t.method, seconds, rand.New(rand.NewPCG(in.Seed+uint64(s), name.Sum64())))
		if err != nil {
			return fmt.Errorf("%s with %s: %w", p.workload, t.method, err)
		}
		n := float64(in.Seeds)
		regret, used, runs = regret+max(r.loss-p.optimum, 0)/n, used+r.seconds/n, runs+float64(len(r.trials))/n
	}
	t.row.RegretMean, t.row.SecondsUsedMean, t.row.RunsMean = &regret, &used, &runs
	return nil
}

// means sums up the rows of one file.
func (in Input) means(file string, tasks []*task) []Means {
	var out []Means
	random := 0.0
	for _, m := range in.Methods {
		mean := Means{Data: file, Method: m}
		sum := 0.0
		for _, t := range tasks {
			if t.method == m && t.row.RegretMean != nil {
				mean.Problems++
				sum += *t.row.RegretMean
			}
		}
		if mean.Problems > 0 {
			mean.RegretMean = new(sum / float64(mean.Problems))
			if m == Random {
				random = *mean.RegretMean
			}
		}
		out = append(out, mean)
	}
	for i, m := range out {
		if random > 0 && m.RegretMean != nil {
			out[i].OverRandom = new(*m.RegretMean / random)
		}
	}
	return out
}

// Text prints the rows of each workload and the means of each file.
func Text(r Report) string {
	var means, rows [][]string
	for _, x := range r.Rows {
		rows = append(rows, []string{
			records.Group{Workload: x.Workload, Input: x.Input}.Name(), x.Machine, string(x.Method), evaluate.Number(x.Seconds, 0), evaluate.Number(x.SecondsUsedMean, 0),
			evaluate.Number(x.RunsMean, 1), evaluate.Number(x.RegretMean, 4),
		})
	}
	for _, m := range r.Summary.Means {
		means = append(means, []string{
			m.Data, string(m.Method), strconv.Itoa(m.Problems), evaluate.Number(m.RegretMean, 4), evaluate.Number(m.OverRandom, 2),
		})
	}
	return evaluate.Columns([]string{"WORKLOAD", "MACHINE", "METHOD", "SECONDS", "USED", "RUNS", "REGRET"}, rows) + "\n" +
		evaluate.Columns([]string{"FILE", "METHOD", "PROBLEMS", "REGRET", "OVER RANDOM"}, means) +
		evaluate.LeftOutText(r.Summary.LeftOut)
}
