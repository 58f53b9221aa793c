package replay

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// costs sums stories up; oracle are the costs of the best settings, for each of them.
func costs(all []story, oracle []float64) evaluate.Line {
	ratios := tuning.Each(all, func(s story) float64 { return s.ratio })
	paid := evaluate.Only(ratios, func(ratio float64) bool { return ratio < 1-tolerance })
	hurt := evaluate.Only(ratios, func(ratio float64) bool { return ratio > 1+tolerance })
	least, greatest := evaluate.Range(ratios)
	return evaluate.Line{
		"jobs": len(all), "moved": evaluate.ShareOf(all, func(s story) bool { return s.course.Restarts > 0 }),
		"paid": evaluate.Share(len(paid), len(all)), "paid_ratio": evaluate.GeometricOf(paid),
		"hurt": evaluate.Share(len(hurt), len(all)), "hurt_ratio": evaluate.GeometricOf(hurt),
		"ratio": evaluate.GeometricOf(ratios), "best_ratio": least, "worst_ratio": greatest, "oracle_ratio": evaluate.GeometricOf(oracle),
	}
}

// compared sums up jobs, how the same jobs go otherwise, and how they go when they return.
func compared(all []story, oracle []float64) evaluate.Line {
	always := tuning.Each(all, func(s story) float64 { return s.always })
	_, worst := evaluate.Range(always)
	out := costs(all, oracle)
	return out.With(evaluate.Line{
		"slower":       evaluate.ShareOf(all, func(s story) bool { return s.slower }),
		"always_ratio": evaluate.GeometricOf(always), "always_worst_ratio": worst,
		"always_hurt": evaluate.ShareOf(always, func(ratio float64) bool { return ratio > 1+tolerance }),
		"regret":      out.Figure("ratio")/out.Figure("oracle_ratio") - 1, "returned": returned(all, oracle),
	})
}

// returned sums up the runs that came again; nil: none.
func returned(all []story, oracle []float64) evaluate.Line {
	var again, last []story
	var oracles []float64
	for i, s := range all {
		if n := len(s.returned); n > 0 {
			again, last = append(again, s.returned...), append(last, s.returned[n-1])
			oracles = append(oracles, slices.Repeat(oracle[i:i+1], n)...)
		}
	}
	if len(again) == 0 {
		return nil
	}
	changed := evaluate.ShareOf(again, func(r story) bool { return !r.course.Under[0].Equal(r.job.Own) })
	return costs(again, oracles).With(evaluate.Line{"changed": changed, "last_ratio": costs(last, nil)["ratio"], "final": last[0].course.final()})
}

func (c Course) final() string { return c.Under[len(c.Under)-1].Key() }

// row sums up the jobs of one table and length.
func (in PlanInput) row(all []story) evaluate.Line {
	first := all[0].job
	cells := first.reachable()
	m, own := first.Policy.Measure(), cells[first.Own.Key()]
	best, least := evaluate.Least(slices.Sorted(maps.Keys(cells)), func(key string) float64 {
		if in.MaxSlowdown > 0 && cells[key].Seconds > in.MaxSlowdown*own.Seconds {
			return math.Inf(1)
		}
		return m.Log(cells[key]) - m.Log(own)
	})
	if !(least < 0) {
		best, least = first.Own.Key(), 0
	}
	mean := func(of func(story) float64) evaluate.Figure { return evaluate.Mean(tuning.Each(all, of)) }
	return first.Line().With(compared(all, slices.Repeat([]float64{math.Exp(least)}, len(all))), evaluate.Line{
		"part": first.part, "settings": len(cells), "oracle": best, "final": all[0].course.final(), "epoch_seconds": evaluate.Figure(own.Seconds),
		"epochs":      mean(func(s story) float64 { return float64(s.job.Epochs) }),
		"restarts":    mean(func(s story) float64 { return float64(s.course.Restarts) }),
		"probes":      mean(func(s story) float64 { return float64(s.course.Probes) }),
		"never_ratio": evaluate.GeometricOf(tuning.Each(all, func(s story) float64 { return s.never })),
	})
}

func (in PlanInput) summary(rows []evaluate.Line, stories [][]story) evaluate.Line {
	all := slices.Concat(stories...)
	var oracle []float64
	for i, r := range rows {
		oracle = append(oracle, slices.Repeat([]float64{float64(r.Figure("oracle_ratio"))}, len(stories[i]))...)
	}
	s := compared(all, oracle).With(evaluate.Line{
		"objective": objectiveOf(recurring.Goal{Measure: in.Measure, MaxSlowdown: in.MaxSlowdown}), "restart_seconds": evaluate.Figure(in.Restart.Seconds()), "wait_seconds": evaluate.Figure(in.Wait.Seconds()),
		"noise_attempts": evaluate.Figure(in.Noise.Attempt), "noise_epochs": evaluate.Figure(in.Noise.Epoch), "rows": len(rows),
	})
	s["hurt_of_moved"], s["worst_at"] = s.Figure("hurt")/s.Figure("moved"), worstAt(rows)
	if again := s.Line("returned"); again != nil {
		delete(again, "final")
		again["worst_at"] = worstAt(tuning.Each(rows, func(r evaluate.Line) evaluate.Line { return r.With(r.Line("returned")) }))
	}
	return s
}

// worstAt distinguishes the first row of the greatest cost from the others.
func worstAt(rows []evaluate.Line) string {
	if len(rows) == 0 {
		return ""
	}
	worst := slices.MaxFunc(rows, func(a, b evaluate.Line) int { return cmp.Compare(a.Figure("worst_ratio"), b.Figure("worst_ratio")) })
	name := evaluate.Group{Workload: worst.Text("workload"), Input: worst.Text("input")}.Name()
	words := strings.Fields(strings.Join([]string{name, worst.Text("machine"), worst.Text("part")}, " "))
	return fmt.Sprintf("%s of %.4g epochs", strings.Join(words, " "), float64(worst.Figure("epochs")))
}
