package hyper

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/design"
	"pitchpipe/controller/search/gauss"
	"pitchpipe/controller/search/halving"
	"pitchpipe/controller/tuning"
)

// problem is one workload on one machine.
type problem struct {
	workload, machine string
	settings          []tuning.Settings // by run
	curves            [][]halving.Epoch
	full              int     // epochs of the longest run
	median            float64 // seconds of a run; 0: seconds are not recorded
	optimum           float64 // least error of a run at its last epoch
	space             design.Space
	points            [][]float64
	expected          []float64 // from the history, nil without one
}

// LeftOut is a workload that cannot be searched.
type LeftOut struct {
	Data     string `json:"data"` // the file
	Workload string `json:"workload"`
	Machine  string `json:"machine"`
	Why      string `json:"why"`
}

// memory is how many settings a history is made of.
const memory = 100

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
	for _, g := range t.Groups() {
		p, err := problemOf(t, g)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case len(p.curves) > 1:
			out = append(out, p)
		case len(p.curves) == 1:
			left = append(left, LeftOut{t.File, g.Workload, g.Machine, "it has a single run"})
		default:
			left = append(left, LeftOut{t.File, g.Workload, g.Machine, "no run ends with an outcome"})
		}
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("%w: %s: no workload has two runs with an outcome", records.ErrInvalid, t.File)
	}
	for i, p := range out {
		var past []gauss.Past
		for _, q := range out {
			if q.workload != p.workload {
				past = append(past, gauss.Past{X: p.space.Points(q.settings), Y: q.ends()})
			}
		}
		var err error
		if out[i].expected, err = gauss.History(past, p.points, p.space.Words(), gauss.DefaultPrior(), memory); err != nil {
			return nil, nil, fmt.Errorf("history of %s: %w", p.workload, err)
		}
	}
	return out, left, nil
}

func problemOf(t records.Table, g records.Group) (problem, error) {
	graded := slices.ContainsFunc(g.Rows, func(r records.Row) bool { _, ok := r.Float("quality"); return ok })
	p := problem{workload: g.Workload, machine: g.Machine, optimum: math.Inf(1)}
	var seconds []float64
	for _, run := range records.Runs(g.Rows) {
		curve, total, err := curveOf(t, run, graded)
		if err != nil {
			return problem{}, err
		}
		if len(curve) == 0 {
			continue
		}
		p.settings, p.curves = append(p.settings, run[0].Knobs), append(p.curves, curve)
		p.full = max(p.full, len(curve))
		if last := curve[len(curve)-1]; !last.Failed {
			p.optimum = min(p.optimum, last.Loss)
		}
		seconds = append(seconds, total)
	}
	if math.IsInf(p.optimum, 1) {
		return problem{}, nil
	}
	slices.Sort(seconds)
	if seconds[0] > 0 {
		p.median = seconds[len(seconds)/2]
	}
	p.space = design.Of(p.settings)
	p.points = p.space.Points(p.settings)
	return p, nil
}

// curveOf are the epochs of a run in order and its seconds in all, 0 where an epoch has
// none. graded: what counts is the quality. A run without an outcome at an epoch broke
// there.
func curveOf(t records.Table, run []records.Row, graded bool) ([]halving.Epoch, float64, error) {
	run = slices.Clone(run)
	slices.SortStableFunc(run, func(a, b records.Row) int {
		x, _ := a.Float("epoch")
		y, _ := b.Float("epoch")
		return cmp.Compare(x, y)
	})
	var out []halving.Epoch
	before, known := 0.0, true
	for _, r := range run {
		e := halving.Epoch{}
		now, ok := r.Float("seconds")
		if ok && now < before {
			return nil, 0, fmt.Errorf("%w: %s:%d: run %q has %g seconds after %g: want seconds since its start, which never fall", records.ErrInvalid, t.File, r.Line, r.Run, now, before)
		}
		known = known && ok
		e.Seconds, before = now-before, now
		e.Loss, e.Failed = lossOf(r, graded)
		out = append(out, e)
		if e.Failed {
			break
		}
	}
	if !known {
		before = 0
	}
	return out, before, nil
}

// lossOf is 1 - quality where the workload is graded, else the loss; true: it is missing.
func lossOf(r records.Row, graded bool) (float64, bool) {
	if graded {
		q, ok := r.Float("quality")
		return 1 - q, !ok
	}
	l, ok := r.Float("loss")
	return l, !ok
}

// ends are the logarithms of the errors at the last epochs, those of broken runs at the
// worst.
func (p problem) ends() []float64 {
	worst := 0.0
	for _, c := range p.curves {
		if last := c[len(c)-1]; !last.Failed {
			worst = max(worst, last.Loss)
		}
	}
	out := make([]float64, len(p.curves))
	for i, c := range p.curves {
		loss := c[len(c)-1].Loss
		if c[len(c)-1].Failed {
			loss = worst
		}
		out[i] = logOf(loss)
	}
	return out
}

// logOf is the logarithm of an error; one of nothing counts as one in a million.
func logOf(loss float64) float64 { return math.Log(max(loss, 1e-6)) }
