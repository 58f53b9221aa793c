package replay

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/tuning"
)

// Method names a way to search.
type Method = string

// The methods.
const (
	Random          Method = "random"
	Grid            Method = "grid"
	LatinHypercube  Method = "latin_hypercube"
	GaussianProcess Method = "gaussian_process"
	WarmStart       Method = "gaussian_process_warm"
	ASHA            Method = "asha"
	ASHAStopping    Method = "asha_stopping"
	ASHAModel       Method = "asha_gaussian_process"
	ASHAWarm        Method = "asha_gaussian_process_warm"
)

// leastLoss is the least error or loss that counts: what is perfect has no logarithm.
const leastLoss = 1e-6

// problem is one workload on one machine: the settings that were recorded, and what came
// out. Outcomes are logarithms and are minimised.
type problem struct {
	evaluate.Group
	outcome    string
	settings   []tuning.Settings
	candidates *propose.Candidates
	expected   []float64 // by the other workloads of the table; nil: none
	truth      []float64 // by setting
	worst      float64   // of a run

	runs [][]float64 // by setting; NaN: it failed

	curves  [][]preview.Epoch // by setting, with one run each; a smaller value is better; NaN: the run broke
	full    int               // epochs of the longest run
	cadence int               // epochs that runs usually go without an outcome
	median  float64           // seconds of a run; 0: seconds are not recorded
	optimum float64           // least error of a run at any epoch
	begin   float64           // the worst error of a run at its first epoch: that of a search without a report

	recalled  [][]float64 // by the other workloads of the table, each by itself; nil: they do not help
	alone     bool        // there is no other workload
	threshold float64     // error that one run of twenty reaches
}

// method is a way to propose settings, in a budget of so many.
func (p *problem) method(m Method, budget int, rng *rand.Rand) propose.Method {
	c := p.candidates
	switch m {
	case Grid:
		return c.Grid(budget, rng)
	case LatinHypercube:
		return c.LatinHypercube(budget, rng)
	case GaussianProcess:
		return c.Gaussian(nil, rng)
	case WarmStart:
		return c.Gaussian(p.expected, rng)
	default:
		return c.Random(rng)
	}
}

// remember gives each problem what the other workloads of the table let expect.
func remember(problems []*problem) error {
	for _, p := range problems {
		others := evaluate.Only(problems, func(q *problem) bool { return q.Workload != p.Workload && q.outcome == p.outcome })
		past := tuning.Each(others, func(q *problem) propose.Past { return propose.Past{Settings: q.settings, Losses: q.truth} })
		var err error
		if p.alone = len(past) == 0; len(p.curves) > 0 {
			p.recalled, err = p.candidates.Recall(past)
		} else {
			p.expected, err = p.candidates.History(past)
		}
		if err != nil {
			return fmt.Errorf("history of %s: %w", p.Workload, err)
		}
	}
	return nil
}

// luck is what is random about one search. Methods that are compared have the same.
func (p *problem) luck(seed uint64, of string) *rand.Rand {
	return rand.New(rand.NewPCG(seed, hash(p.Name(), p.Machine+of)))
}

// hash is a number for words, so that what they name has its own luck.
func hash(words ...string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Join(words, "\x00"))) // never fails
	return h.Sum64()
}

// comparison is how an evaluation of searches compares methods.
type comparison struct {
	asked   []Method // none: all methods
	methods []Method
	seeds   int    // searches of each problem and method
	seed    uint64 // the first of them
	wants   error  // what is wrong with other choices

	lacks  func(evaluate.Table) error // a column
	read   func(p *problem, f evaluate.Format, left *evaluate.LeftOut) (why string)
	search func(p *problem, m Method, seed uint64) ([]evaluate.Line, error) // as many rows for each seed

	none     string   // what is printed for a table without a problem
	keys     []string // of the rows that a mean is over; the first is the method
	figures  []string // whose means are taken; the first is compared with that of random
	interval string   // begins the keys of the interval of the first figure over the seeds; empty: rows have none
}

// problems splits a table into workloads that can be searched.
func (c comparison) problems(t evaluate.Table, left *evaluate.LeftOut) ([]*problem, error) {
	if err := c.lacks(t); err != nil {
		return nil, err
	}
	var out []*problem
	reason := ""
	for _, g := range t.Jobs() {
		p := &problem{Group: g}
		if why := c.read(p, t.Format, left); why != "" {
			left.Add(g, nil, why)
			reason = cmp.Or(reason, g.Name()+", "+why)
			continue
		}
		p.candidates = propose.Of(p.settings)
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, evaluate.Invalid("%s: %s: of %s", t.File, c.none, reason)
	}
	if slices.Contains(c.methods, WarmStart) || slices.Contains(c.methods, ASHAWarm) {
		return out, remember(out)
	}
	return out, nil
}

// report searches every problem of every table with every method.
func (c comparison) report(ctx context.Context, command string, tables []evaluate.Table, progress evaluate.Progress) (evaluate.Report, error) {
	type task struct {
		problem *problem
		method  Method
	}
	out := evaluate.Report{Command: command, Data: evaluate.Set{Trials: tables}.Files()}
	strange, is := tuning.First(c.asked, func(m Method) bool { return !slices.Contains(c.methods, m) })
	err := cmp.Or(
		evaluate.Want(!is, "method %q: want one of %s", strange, strings.Join(c.methods, ", ")),
		c.wants,
		evaluate.Want(c.seeds >= 1, "%d seeds: want 1 at least", c.seeds),
	)
	if err != nil {
		return out, err
	}
	if len(c.asked) > 0 {
		c.methods = c.asked
	}
	var all []task
	var left evaluate.LeftOut
	for _, t := range tables {
		problems, err := c.problems(t, &left)
		if err != nil {
			return out, err
		}
		for _, p := range problems {
			for _, m := range c.methods {
				all = append(all, task{p, m})
			}
		}
	}
	err = out.Fill(ctx, len(all), progress, func(ctx context.Context, i int) (string, []evaluate.Line, error) {
		t := all[i]
		rows, err := c.rows(ctx, t.problem, t.method)
		return strings.TrimSpace(t.problem.Name()+" "+t.problem.Machine) + ", " + t.method, rows, err
	})
	out.Summary = evaluate.Line{"seed": c.seed, "means": c.means(out.Rows), "left_out": []evaluate.Line(left)}
	for _, row := range out.Rows {
		delete(row, "data")
		delete(row, eachSeed)
	}
	return out, err
}

// rows returns the lines of a search, averaged over the seeds.
func (c comparison) rows(ctx context.Context, p *problem, m Method) ([]evaluate.Line, error) {
	found := make([][]evaluate.Line, c.seeds)
	for seed := range found {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if found[seed], err = c.search(p, m, c.seed+uint64(seed)); err != nil { //nolint:gosec // an index
			return nil, fmt.Errorf("%s with %s: %w", p.Name(), m, err)
		}
	}
	return tuning.Each(evaluate.Indices(found[0]), func(i int) evaluate.Line {
		all := tuning.Each(found, func(rows []evaluate.Line) evaluate.Line { return rows[i] })
		row := evaluate.Average(all).With(p.Line(), evaluate.Line{"data": p.File, "method": m, "seeds": c.seeds})
		if c.interval != "" {
			each := evaluate.Column(all, c.figures[0])
			row[eachSeed] = each
			row[c.interval+"_low"], row[c.interval+"_high"] = evaluate.Interval(each)
		}
		return row
	}), nil
}

// eachSeed is the key of a row under which the first figure of each seed is kept for means.
const eachSeed = "each"

// spread is the interval of the ratio of two methods over the same problems and seeds. Each seed shows how
// far the ratio is from the mean one.
func (c comparison) spread(rows, random []evaluate.Line, ratio evaluate.Figure) (low, high evaluate.Figure) {
	total := func(rows []evaluate.Line) []float64 {
		sums := make([]float64, c.seeds)
		for _, r := range evaluate.Only(rows, func(r evaluate.Line) bool { return r.Figure(c.figures[0]).Known() }) {
			each, _ := r[eachSeed].([]evaluate.Figure)
			for i, v := range each {
				sums[i] += float64(v)
			}
		}
		return sums
	}
	a, b := total(rows), total(random)
	for i := range a {
		a[i] = float64(ratio) + (a[i]-float64(ratio)*b[i])/float64(evaluate.Mean(b))
	}
	return evaluate.Interval(a)
}

// means sums up the rows of each file, method and the like, over the problems that the method
// applies to, and compares it with random on the same problems. Where random is always right,
// nothing is compared with it.
func (c comparison) means(rows []evaluate.Line) []evaluate.Line {
	first, others := c.figures[0], append([]string{"data"}, c.keys[1:]...) // without the method
	keys := append([]string{c.keys[0]}, others...)
	name := func(l evaluate.Line, keys []string) string {
		return fmt.Sprint(tuning.Each(keys, func(key string) any { return l[key] }))
	}
	about := slices.Concat(others, []string{"workload", "machine", "input"})
	applies := func(l evaluate.Line) bool { return l.Figure(first).Known() }
	return tuning.Each(evaluate.Split(rows, func(l evaluate.Line) string { return name(l, keys) }), func(own []evaluate.Line) evaluate.Line {
		mean := evaluate.Line{"problems": len(evaluate.Only(own, applies))}
		if slices.ContainsFunc(own, applies) {
			own = evaluate.Only(own, applies)
		}
		all := evaluate.Average(own)
		for _, key := range slices.Concat(keys, c.figures) {
			mean[key] = all[key]
		}
		random := evaluate.Only(rows, func(r evaluate.Line) bool {
			return r["method"] == Random && slices.ContainsFunc(own, func(l evaluate.Line) bool { return name(l, about) == name(r, about) })
		})
		if r := evaluate.Mean(evaluate.Column(random, first)); r > 0 {
			ratio := mean.Figure(first) / r
			mean["over_random"] = ratio
			if c.interval != "" {
				mean["over_random_low"], mean["over_random_high"] = c.spread(own, random, ratio)
			}
		}
		return mean
	})
}
