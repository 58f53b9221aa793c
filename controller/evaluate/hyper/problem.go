package hyper

import (
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

// problem is one workload on one machine.
type problem struct {
	workload, machine string
	input             string
	settings          []tuning.Settings // by run
	curves            [][]epoch
	full              int     // epochs of the longest run
	cadence           int     // epochs that runs usually go without an outcome
	median            float64 // seconds of a run; 0: seconds are not recorded
	optimum           float64 // least error of a run at its last epoch
	candidates        *propose.Candidates
	expected          []float64 // from the history, nil without one
}

// LeftOut is a workload that cannot be searched, or runs of it.
type LeftOut = evaluate.LeftOut

func (p problem) name() string { return records.Group{Workload: p.workload, Input: p.input}.Name() }

// problemsOf splits a table and gives each problem what the other workloads let expect.
func problemsOf(t records.Table) ([]problem, []LeftOut, error) {
	column := "quality"
	if !t.Has(column) {
		column = "loss"
	}
	if !t.Has(column) {
		return nil, nil, fmt.Errorf("%w: %s:1:1: no column quality or loss", records.ErrInvalid, t.File)
	}
	var out []problem
	var left []LeftOut
	for _, g := range t.Jobs() {
		p, lost := problemOf(t, g)
		left = append(left, lost...)
		switch {
		case len(p.curves) > 1:
			out = append(out, p)
		case len(p.curves) == 1:
			left = append(left, LeftOut{Data: t.File, Workload: g.Name(), Machine: g.Machine, Why: "it has a single run"})
		case !slices.ContainsFunc(lost, func(l LeftOut) bool { return l.Rows == 0 }): // nothing was said of it yet
			left = append(left, LeftOut{Data: t.File, Workload: g.Name(), Machine: g.Machine, Why: "no run ends with an outcome"})
		}
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("%w: %s: no workload has two runs with an outcome", records.ErrInvalid, t.File)
	}
	for i, p := range out {
		var past []propose.Past
		for _, q := range out {
			if q.workload != p.workload {
				past = append(past, propose.Past{Settings: q.settings, Losses: q.ends()})
			}
		}
		var err error
		if out[i].expected, err = p.candidates.History(past); err != nil {
			return nil, nil, fmt.Errorf("history of %s: %w", p.workload, err)
		}
	}
	return out, left, nil
}

// problemOf gathers the runs of a group. What counts is the quality where a row has one,
// else the loss. Runs without seconds are left out where others have some.
func problemOf(t records.Table, g records.Group) (problem, []LeftOut) {
	grade := grading{column: "loss"}
	has := func(column string) bool {
		return slices.ContainsFunc(g.Rows, func(r records.Row) bool { _, ok := r.Float(column); return ok })
	}
	if whole, known := records.Whole(g.Rows); has("quality") && (known || !has("loss")) {
		grade = grading{column: "quality", whole: whole}
		if !known {
			return problem{}, []LeftOut{{
				Data: t.File, Workload: g.Name(), Machine: g.Machine,
				Why: "a quality above 100 is neither a share nor a percentage: nobody knows what is perfect",
			}}
		}
	}
	runs := records.Runs(g.Rows)
	for i := range runs {
		runs[i] = records.InOrder(runs[i])
	}
	p := problem{workload: g.Workload, machine: g.Machine, input: g.Input, optimum: math.Inf(1), cadence: records.Cadence(runs, grade.column)}
	worst := grade.worstBegin(runs)
	timed := slices.ContainsFunc(runs, func(run []records.Row) bool { _, why := secondsOf(run); return why == "" })
	var seconds []float64
	var left []LeftOut
	for _, run := range runs {
		took, why := secondsOf(run)
		if why != "" && timed {
			left = evaluate.Leave(left, LeftOut{Data: t.File, Workload: g.Name(), Machine: g.Machine, Rows: len(run), Line: run[0].Line, Why: why})
			continue
		}
		curve := grade.curve(run, took, p.cadence, worst)
		total, told := run[len(curve)-1].Float("seconds")
		for _, e := range curve {
			if !told {
				total += e.seconds
			}
		}
		p.settings, p.curves = append(p.settings, run[0].Knobs), append(p.curves, curve)
		p.full = max(p.full, len(curve))
		if last := curve[len(curve)-1]; !last.failed {
			p.optimum = min(p.optimum, last.loss)
		}
		seconds = append(seconds, total)
	}
	if math.IsInf(p.optimum, 1) {
		return problem{}, left
	}
	if timed {
		slices.Sort(seconds)
		p.median = seconds[len(seconds)/2]
	}
	p.candidates = propose.Of(p.settings)
	return p, left
}

// secondsOf are those of each epoch of a run in order. Where some are not told, the time
// between is shared among the epochs, and the last of them take as long as those before.
// The words say why they cannot be known.
func secondsOf(run []records.Row) ([]float64, string) {
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

// grading says what of a row is the error.
type grading struct {
	column string
	whole  float64 // of a quality: what is perfect
}

func (g grading) of(r records.Row) (float64, bool) {
	v, ok := r.Float(g.column)
	if g.column == "quality" {
		v = 1 - v/g.whole
	}
	return v, ok
}

// worstBegin is the worst of the first errors that runs tell: that of a run which has not
// told any yet.
func (g grading) worstBegin(runs [][]records.Row) float64 {
	worst := math.Inf(-1)
	for _, run := range runs {
		for _, r := range run {
			if v, ok := g.of(r); ok {
				worst = max(worst, v)
				break
			}
		}
	}
	return worst
}

// curve are the epochs of a run in order. An epoch that tells no error has that of the one
// before; where none follows although it should, the run broke.
func (g grading) curve(run []records.Row, seconds []float64, cadence int, worst float64) []epoch {
	last, broke := records.Last(run, g.column, cadence)
	var out []epoch
	loss := worst
	for i, r := range run {
		if v, ok := g.of(r); ok {
			loss = v
		}
		e := epoch{loss: loss, failed: broke && i > last}
		if seconds != nil {
			e.seconds = seconds[i]
		}
		out = append(out, e)
		if e.failed {
			break
		}
	}
	return out
}

// worst is the worst error after a first epoch: what a search has that ran nothing.
func (p problem) worst() float64 {
	worst := 0.0
	for _, c := range p.curves {
		worst = max(worst, c[0].loss)
	}
	return worst
}

// ends are the logarithms of the errors at the last epochs, those of broken runs at the
// worst.
func (p problem) ends() []float64 {
	worst := 0.0
	for _, c := range p.curves {
		if last := c[len(c)-1]; !last.failed {
			worst = max(worst, last.loss)
		}
	}
	out := make([]float64, len(p.curves))
	for i, c := range p.curves {
		loss := c[len(c)-1].loss
		if c[len(c)-1].failed {
			loss = worst
		}
		out[i] = logOf(loss)
	}
	return out
}

// logOf is the logarithm of an error; one of nothing counts as one in a million.
func logOf(loss float64) float64 { return math.Log(max(loss, 1e-6)) }
