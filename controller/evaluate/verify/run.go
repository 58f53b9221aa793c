package verify

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/tuning"
)

// null is a source of replays in which nothing has an effect.
type null struct {
	comparison Comparison
	name       string
	source     string
	data       string
	objective  tuning.Objective
	limit      string
	workloads  []string // replays are dealt to them in turn; at least one
	draw       func(rng *rand.Rand, workload int) replay
}

func (n null) title() string {
	if n.source == Simulated {
		return fmt.Sprintf("%s, %s, %s", n.comparison, n.name, n.source)
	}
	return fmt.Sprintf("%s, %s, %s, %s", n.comparison, n.name, n.objective, n.data)
}

// rng is the luck of one replay, the same for all effects.
func (n null) rng(seed uint64, nth int) *rand.Rand {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, n.comparison, n.name, n.objective, n.workloads) // never fails; not the path of the file
	return rand.New(rand.NewPCG(h.Sum64()^seed, uint64(nth)))            //nolint:gosec // an index
}

// Run replays every null with every effect. The same input gives the same report.
func Run(ctx context.Context, in Input, tell evaluate.Progress) (Report, error) {
	in = in.withDefaults()
	if err := in.check(); err != nil {
		return Report{}, err
	}
	report := Report{Command: "evaluate verify", Data: []string{}}
	nulls := in.simulated()
	left := []string{}
	for _, kind := range []struct {
		tables []records.Table
		nulls  func(Input, records.Table) []null
	}{{in.Trials, Input.fromTrials}, {in.Samples, Input.fromSamples}, {in.Curves, Input.fromCurves}} {
		for _, t := range kind.tables {
			report.Data = append(report.Data, t.File)
			found := kind.nulls(in, t)
			if len(found) == 0 {
				left = append(left, t.File+": no two runs or epochs that nothing was changed between, or too few")
			}
			nulls = append(nulls, found...)
		}
	}
	rows := make([][]Row, len(nulls))
	err := evaluate.Each(ctx, len(nulls), tell, func(ctx context.Context, i int) (string, error) {
		var err error
		rows[i], err = in.rows(ctx, nulls[i])
		return nulls[i].title(), err
	})
	if err != nil {
		return Report{}, fmt.Errorf("evaluate verify: %w", err)
	}
	report.Rows = slices.Concat(rows...)
	report.Summary = in.summary(report.Rows)
	report.Summary.LeftOut = left
	return report, nil
}

// rows replays one null: a row for each effect.
func (in Input) rows(ctx context.Context, n null) ([]Row, error) {
	effects := Effects()
	seen := make([][]verdicts, len(effects))
	for nth := range in.Seeds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := n.draw(n.rng(in.Seed, nth), nth%len(n.workloads))
		for e, effect := range effects {
			seen[e] = append(seen[e], in.judge(n, r, effect))
		}
	}
	out := make([]Row, len(effects))
	for e, effect := range effects {
		out[e] = n.row(effect, seen[e])
	}
	return out, nil
}

func (n null) row(effect float64, seen []verdicts) Row {
	r := Row{
		Comparison: n.comparison, Null: n.name, Source: n.source, Data: n.data, Objective: n.objective, Limit: n.limit,
		Effect: effect, Workloads: len(n.workloads), Replays: len(seen),
	}
	share := func(of func(verdicts) bool) float64 {
		n := 0
		for _, v := range seen {
			if of(v) {
				n++
			}
		}
		return float64(n) / float64(len(seen))
	}
	r.FalseVerdicts = share(func(v verdicts) bool { return v.wrong })
	r.Neutral = share(func(v verdicts) bool { return v.first == tuning.Neutral })
	r.Inconclusive = share(func(v verdicts) bool { return v.inconclusive })
	r.Coverage = share(func(v verdicts) bool { return v.covered })
	r.CoverageLast = share(func(v verdicts) bool { return v.last })
	power := share(func(v verdicts) bool { return v.first == tuning.Improved })
	looks := 0
	var waits []float64
	for _, v := range seen {
		looks += v.looks
		if v.right {
			waits = append(waits, float64(v.toFirst))
		}
	}
	r.Looks = float64(looks) / float64(len(seen))
	if effect > 0 {
		r.Power = &power
	}
	slices.Sort(waits)
	r.ToVerdict, r.ToVerdict90 = quantile(waits, 0.5), quantile(waits, 0.9)
	if len(n.workloads) > 1 {
		r.Worst, r.WorstFalse = n.worst(seen)
	} else {
		r.WorstFalse = r.FalseVerdicts
	}
	return r
}

// worst is the workload of most false verdicts, of several the first.
func (n null) worst(seen []verdicts) (name string, share float64) {
	for w, workload := range n.workloads {
		wrong, all := 0.0, 0.0
		for i := w; i < len(seen); i += len(n.workloads) {
			all++
			if seen[i].wrong {
				wrong++
			}
		}
		if all > 0 && (name == "" || wrong/all > share) {
			name, share = workload, wrong/all
		}
	}
	return name, share
}

// quantile is the value that a share of the sorted ones is at most; nil: there are none.
func quantile(sorted []float64, share float64) *float64 {
	if len(sorted) == 0 {
		return nil
	}
	return &sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

func (in Input) summary(rows []Row) Summary {
	s := Summary{Level: in.Level, Seed: in.Seed, Replays: in.Seeds, Over: []string{}, CoverageMin: 1}
	for _, r := range rows {
		title := null{comparison: r.Comparison, name: r.Null, source: r.Source, data: r.Data, objective: r.Objective}.title()
		switch {
		case r.Limit != "" && r.Effect == 0:
			s.LimitedRows++
			if r.FalseVerdicts > s.LimitedFalse || s.LimitedOf == "" {
				s.LimitedFalse, s.LimitedOf = r.FalseVerdicts, title
			}
		case r.Limit == "" && r.Effect == 0:
			s.Rows++
			if r.FalseVerdicts > s.FalseMax || s.FalseOf == "" {
				s.FalseMax, s.FalseOf = r.FalseVerdicts, title
			}
			if r.FalseVerdicts > in.Level+2.5*math.Sqrt(in.Level*(1-in.Level)/float64(r.Replays)) {
				s.Over = append(s.Over, title)
			}
		}
		if r.Limit == "" {
			s.CoverageMin = min(s.CoverageMin, r.Coverage)
		}
	}
	s.Power = powers(rows)
	return s
}

// powers are the means over rows without a limit.
func powers(rows []Row) []Power {
	var out []Power
	waits := [][]float64{}
	for _, r := range rows {
		if r.Limit != "" || r.Power == nil {
			continue
		}
		i := slices.IndexFunc(out, func(p Power) bool {
			return p.Comparison == r.Comparison && p.Source == r.Source && p.Effect == r.Effect
		})
		if i < 0 {
			i = len(out)
			out = append(out, Power{Comparison: r.Comparison, Source: r.Source, Effect: r.Effect})
			waits = append(waits, nil)
		}
		out[i].Rows++
		out[i].Power += *r.Power
		if r.ToVerdict != nil {
			waits[i] = append(waits[i], *r.ToVerdict)
		}
	}
	for i := range out {
		out[i].Power /= float64(out[i].Rows)
		slices.Sort(waits[i])
		out[i].ToVerdict = quantile(waits[i], 0.5)
	}
	slices.SortStableFunc(out, func(a, b Power) int {
		return cmp.Or(cmp.Compare(a.Comparison, b.Comparison), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Effect, b.Effect))
	})
	return out
}
