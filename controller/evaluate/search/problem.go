package search

import (
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

// problem is one workload on one machine: the settings that were recorded, and what
// came out.
type problem struct {
	workload, machine string
	input             string
	outcome           string
	whole             float64 // the quality that is perfect, where the outcome is the error
	settings          []tuning.Settings
	runs              [][]run // by settings
	truth             []float64
	optimum           float64 // the least of truth
	worst             float64 // logarithm of the worst outcome of a run
	candidates        *propose.Candidates
	expected          []float64 // from the history, nil without one
}

func (p problem) name() string { return records.Group{Workload: p.workload, Input: p.input}.Name() }

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

// least is the least error or loss that counts: what is perfect has no logarithm.
const least = 1e-6

// outcomeOf picks the outcome of a workload where the user named none: the first of
// joules, seconds, samples_per_second and epoch_seconds that trials hold, or of error
// and loss for curves; of which a run has a value. An error is the last resort where
// nobody knows what quality is perfect.
func outcomeOf(f records.Format, rows []records.Row, known bool) string {
	last := ""
	for _, o := range defaults(f) {
		if !slices.ContainsFunc(ends(f, rows, o), func(r records.Row) bool { return !value(r, o, math.Inf(1)).failed }) {
			continue
		}
		if o != "error" || known {
			return o
		}
		last = o
	}
	return last
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

// value is the logarithm of the row's outcome, whole the quality that is perfect. A run
// without an outcome failed.
func value(r records.Row, outcome string, whole float64) run {
	v, ok := r.Outcome(column(outcome))
	switch outcome {
	case "error", "loss":
		v, ok = r.Float(column(outcome))
		if outcome == "error" {
			v = 1 - v/whole
		}
		if v >= 0 {
			v = max(v, least)
		}
	case "samples_per_second":
		v = 1 / v
	case "edp":
		s, has := r.Outcome("seconds")
		v, ok = v*s, ok && has
	}
	if !ok || r.Failed() || !(v > 0) || math.IsInf(v, 0) {
		return run{failed: true}
	}
	return run{log: math.Log(v)}
}

// LeftOut is a workload that cannot be searched.
type LeftOut = evaluate.LeftOut

// problemsOf splits a table. An outcome that is empty is chosen for each workload.
func problemsOf(t records.Table, outcome string) (out []problem, left []LeftOut) {
	for _, g := range t.Jobs() {
		p := problem{workload: g.Workload, machine: g.Machine, input: g.Input, outcome: outcome, worst: math.Inf(-1)}
		var known bool
		p.whole, known = records.Whole(g.Rows)
		if p.outcome == "" {
			p.outcome = outcomeOf(t.Format, g.Rows, known)
		}
		if p.outcome != "error" || known {
			p.take(ends(t.Format, g.Rows, p.outcome))
		}
		why := ""
		switch {
		case p.outcome == "error" && !known:
			why = "a quality above 100 is neither a share nor a percentage: nobody knows what is perfect"
		case math.IsInf(p.worst, -1):
			why = "no run has an outcome"
		case len(p.settings) < 2:
			why = "it has a single setting"
		default:
			p.finish()
			out = append(out, p)
			continue
		}
		left = append(left, LeftOut{Data: t.File, Workload: g.Name(), Machine: g.Machine, Why: why})
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
		v := value(r, p.outcome, p.whole)
		if !v.failed {
			p.worst = max(p.worst, v.log)
		}
		p.runs[i] = append(p.runs[i], v)
	}
}

// ends are the rows that tell what became of runs: of trials all of them, of curves the
// last epochs at which the outcome is told; the last of all where the run broke before.
func ends(f records.Format, rows []records.Row, outcome string) []records.Row {
	if f != records.Curves {
		return rows
	}
	runs := records.Runs(rows)
	for i := range runs {
		runs[i] = records.InOrder(runs[i])
	}
	cadence := records.Cadence(runs, column(outcome))
	var out []records.Row
	for _, r := range runs {
		last, broke := records.Last(r, column(outcome), cadence)
		if broke {
			last = len(r) - 1
		}
		out = append(out, r[last])
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
	p.candidates = propose.Of(p.settings)
}
