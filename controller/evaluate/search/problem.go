package search

import (
	"math"
	"slices"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/design"
	"pitchpipe/controller/tuning"
)

// problem is one workload on one machine: the settings that were recorded, and what
// came out.
type problem struct {
	workload, machine string
	outcome           string
	settings          []tuning.Settings
	runs              [][]run // by settings
	truth             []float64
	optimum           float64 // the least of truth
	worst             float64 // logarithm of the worst outcome of a run
	space             design.Space
	points            [][]float64
	expected          []float64 // from the history, nil without one
}

// run is one recorded run: the logarithm of its outcome, which is minimised.
type run struct {
	log    float64
	failed bool
}

// Outcomes lists what can be minimised. Error is 1 - quality; speed, in samples or
// iterations per second, is turned around.
func Outcomes() []string {
	return []string{"joules", "seconds", "edp", "epoch_seconds", "samples_per_second", "error", "loss"}
}

// outcomeOf picks the outcome of a workload where the user named none: the first of
// joules, seconds, samples_per_second and epoch_seconds that trials hold, or of error
// and loss for curves; of which a run has a value.
func outcomeOf(f records.Format, rows []records.Row) (string, bool) {
	for _, o := range defaults(f) {
		if slices.ContainsFunc(rows, func(r records.Row) bool { return !value(r, o).failed }) {
			return o, true
		}
	}
	return "", false
}

// defaults are the outcomes looked for, the likeliest to matter first.
func defaults(f records.Format) []string {
	if f == records.Curves {
		return []string{"error", "loss", "seconds"}
	}
	return []string{"joules", "seconds", "samples_per_second", "epoch_seconds", "error", "loss"}
}

func columns(outcomes []string) []string {
	var out []string
	for _, o := range outcomes {
		out = append(out, column(o))
	}
	return out
}

// column is where the outcome stands.
func column(outcome string) string {
	switch outcome {
	case "error":
		return "quality"
	case "edp":
		return "joules"
	}
	return outcome
}

func holds(t records.Table, outcome string) bool {
	if outcome == "edp" {
		return t.Has("joules") && t.Has("seconds")
	}
	return t.Has(column(outcome))
}

// value is the logarithm of the row's outcome. A run without one failed.
func value(r records.Row, outcome string) run {
	if f, _ := r.Float("failed"); f != 0 {
		return run{failed: true}
	}
	v, ok := r.Float(column(outcome))
	switch outcome {
	case "error":
		v = 1 - v
	case "samples_per_second":
		v = 1 / v
	case "edp":
		s, has := r.Float("seconds")
		v, ok = v*s, ok && has
	}
	if !ok || !(v > 0) || math.IsInf(v, 0) {
		return run{failed: true}
	}
	return run{log: math.Log(v)}
}

// LeftOut is a workload that cannot be searched.
type LeftOut struct {
	Data     string `json:"data"` // the file
	Workload string `json:"workload"`
	Machine  string `json:"machine"`
	Why      string `json:"why"`
}

// problemsOf splits a table. An outcome that is empty is chosen for each workload.
func problemsOf(t records.Table, outcome string) (out []problem, left []LeftOut) {
	for _, g := range t.Groups() {
		rows := g.Rows
		if t.Format == records.Curves {
			rows = ends(rows)
		}
		p := problem{workload: g.Workload, machine: g.Machine, outcome: outcome, worst: math.Inf(-1)}
		if p.outcome == "" {
			p.outcome, _ = outcomeOf(t.Format, rows)
		}
		p.take(rows)
		why := ""
		switch {
		case math.IsInf(p.worst, -1):
			why = "no run has an outcome"
		case len(p.settings) < 2:
			why = "it has a single setting"
		default:
			p.finish()
			out = append(out, p)
			continue
		}
		left = append(left, LeftOut{Data: t.File, Workload: g.Workload, Machine: g.Machine, Why: why})
	}
	return out, left
}

// take sorts runs by their settings.
func (p *problem) take(rows []records.Row) {
	at := map[string]int{}
	for _, r := range rows {
		key := r.Knobs.Key()
		i, ok := at[key]
		if !ok {
			i, at[key] = len(p.settings), len(p.settings)
			p.settings, p.runs = append(p.settings, r.Knobs), append(p.runs, nil)
		}
		v := value(r, p.outcome)
		if !v.failed {
			p.worst = max(p.worst, v.log)
		}
		p.runs[i] = append(p.runs[i], v)
	}
}

// ends are the last epochs of runs.
func ends(rows []records.Row) []records.Row {
	var out []records.Row
	for _, r := range records.Runs(rows) {
		out = append(out, slices.MaxFunc(r, func(a, b records.Row) int {
			x, _ := a.Float("epoch")
			y, _ := b.Float("epoch")
			return int(math.Copysign(1, x-y))
		}))
	}
	return out
}

// finish computes what is true of each setting: the mean over its runs, where a failed
// run costs as much as the worst run of the workload.
func (p *problem) finish() {
	p.optimum = math.Inf(1)
	for _, runs := range p.runs {
		sum := 0.0
		for _, r := range runs {
			if r.failed {
				r.log = p.worst
			}
			sum += math.Exp(r.log-p.worst) / float64(len(runs))
		}
		p.truth = append(p.truth, math.Log(sum)+p.worst)
		p.optimum = min(p.optimum, p.truth[len(p.truth)-1])
	}
	p.space = design.Of(p.settings)
	p.points = p.space.Points(p.settings)
}
