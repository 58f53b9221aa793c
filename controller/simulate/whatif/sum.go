package whatif

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/simulate"
	"pitchpipe/controller/tuning"
)

const (
	draws = 1000 // of the bootstrap
	tail  = 0.05 // of the interval on each side
	day   = 24 * hour
)

// figure is a figure of a row: a sum or a mean over jobs.
type figure struct {
	key   string
	of    func(outcome) float64
	sum   bool
	least float64
}

func figures() []figure {
	return []figure{
		{"core_hours", func(o outcome) float64 { return o.coreHours }, true, 0},
		{"mean_wait", func(o outcome) float64 { return o.wait }, false, 0},
		{"mean_bounded_slowdown", func(o outcome) float64 { return o.slowdown }, false, 1},
		{"gib_hours", func(o outcome) float64 { return o.gibHours }, true, 0},
	}
}

// row compares a way with base; nil: with nothing. The views are of the same jobs, the estimate first. Where nothing
// was, or all jobs are of one user and one day, nothing can be compared: it has no interval.
func (s *study) row(w way, base []outcome, views [][]outcome) evaluate.Line {
	changed := 0
	for i, c := range s.changes {
		switch j := s.in.Log.Jobs[i]; {
		case w.cores && c.cores < j.CPUs, w.memory && c.memory < j.Memory, w.packing && c.busy < j.CPUs:
			changed++
		}
	}
	out := evaluate.Line{"way": w.name}
	if w.cores || w.memory || w.packing {
		out["jobs_changed"] = changed
	}
	for _, f := range figures() {
		all := func(jobs []outcome) evaluate.Figure {
			values := tuning.Each(jobs, f.of)
			if !f.sum {
				return evaluate.Mean(values)
			}
			if total := floats.Sum(values); total > 0 {
				return evaluate.Figure(total)
			}
			return evaluate.Figure(math.NaN()) // as of memory that no job of the log names
		}
		out[f.key] = all(views[0])
		was := float64(all(base)) // NaN of no jobs
		if !(was > 0) {
			continue
		}
		low, high := math.Inf(1), 0.0
		for _, view := range views {
			for _, by := range []func(joblog.Job) string{user, submitted} {
				if l, h, ok := s.bootstrap(base, view, f.of, by); ok {
					low, high = min(low, l), max(high, h)
				}
			}
		}
		if low <= high {
			out[f.key+"_low"], out[f.key+"_high"] = evaluate.Figure(max(f.least, was*low)), evaluate.Figure(max(f.least, was*high))
		}
	}
	return out
}

func user(j joblog.Job) string      { return j.User }
func submitted(j joblog.Job) string { return fmt.Sprint(math.Floor(j.Submit / day)) }

// bootstrap is the interval of what each of a figure's base units turns into; groups of jobs are drawn with
// replacement (Efron 1979). Not ok: a single group says nothing of others.
func (s *study) bootstrap(base, view []outcome, of func(outcome) float64, by func(joblog.Job) string) (low, high float64, ok bool) {
	type group struct{ was, is float64 }
	same := evaluate.Split(evaluate.Indices(base), func(i int) string { return by(s.in.Log.Jobs[i]) })
	groups := tuning.Each(same, func(jobs []int) (sum group) {
		for _, i := range jobs {
			sum.was, sum.is = sum.was+of(base[i]), sum.is+of(view[i])
		}
		return sum
	})
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // no secret
	ratios := make([]float64, 0, draws)
	for range draws {
		var all group
		for range groups {
			g := groups[r.IntN(len(groups))]
			all.was, all.is = all.was+g.was, all.is+g.is
		}
		if all.was > 0 { // else there is nothing to compare
			ratios = append(ratios, all.is/all.was)
		}
	}
	slices.Sort(ratios)
	kept := float64(len(ratios))
	return ratios[int(tail*kept)], ratios[int((1-tail)*kept)], len(groups) > 1
}

// recorded are the outcomes that the log shows itself.
func (s *study) recorded() []outcome {
	out := make([]outcome, len(s.in.Log.Jobs))
	for i, j := range s.in.Log.Jobs {
		out[i] = outcome{float64(j.CPUs) * j.Duration / hour, float64(j.Memory) / gib * j.Duration / hour, math.NaN(), math.NaN()}
		if j.Start > 0 {
			out[i].wait, out[i].slowdown = j.Start-j.Submit, simulate.Slowdown(j.Start-j.Submit, j.Duration)
		}
	}
	return out
}

func (s *study) summary(assumed []evaluate.Line) evaluate.Line {
	peaks := evaluate.Only(s.in.Log.Jobs, func(j joblog.Job) bool { return j.MemoryUsed > 0 })
	short := evaluate.Only(s.changes, func(c change) bool { return c.short })
	known, idle, untried := 0, 0.0, 0.0
	for i, j := range s.in.Log.Jobs {
		if j.CPUSeconds > 0 {
			known++
			hours := max(0, float64(j.CPUs)*j.Duration-j.CPUSeconds) / hour
			if idle += hours; s.changes[i].cores == j.CPUs {
				untried += hours
			}
		}
	}
	return evaluate.Line{
		"jobs": len(s.in.Log.Jobs), "lines_left_out": len(s.in.Log.Broken), "jobs_with_cpu_time": known, "jobs_with_memory": len(peaks),
		"idle_core_hours": evaluate.Figure(idle), "untried_core_hours": evaluate.Figure(untried), "memory_too_small": len(short), "assumptions": assumed,
	}
}
