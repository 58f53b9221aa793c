package replay

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/allocate"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// AllocationInput is what Allocation plays.
type AllocationInput struct {
	evaluate.Set           // trials with seconds to the target, and curves, which are only named
	Units        int       // workers or cores of the cluster, at least 1
	Jobs         int       // that arrive, at least 1
	Loads        []float64 // unit-seconds asked for, as a share of what the cluster has while jobs arrive
	Seeds        int       // at least 2, for the intervals
	Seed         uint64    // the first of them
	Restart      float64   // seconds that each change of a running job costs
}

// Allocation lets elastic jobs arrive, and compares how soon they end under several policies. All
// policies of a seed get the same jobs.
func Allocation(ctx context.Context, in AllocationInput, progress evaluate.Progress) (evaluate.Report, error) {
	out := evaluate.Report{Command: "evaluate allocation", Data: in.Files()}
	err := cmp.Or(
		evaluate.Want(in.Units >= 1 && in.Jobs >= 1, "%d units and %d jobs: want 1 or more of each", in.Units, in.Jobs),
		evaluate.Want(in.Seeds >= 2, "%d seeds: want at least 2", in.Seeds),
		evaluate.Want(in.Restart >= 0 && len(in.Loads) > 0 && slices.Min(in.Loads) > 0 && tuning.Finite(in.Restart+slices.Max(in.Loads)), "restart %g, loads %v: want 0 or more, and finite numbers above 0", in.Restart, in.Loads),
	)
	if err != nil {
		return out, err
	}
	var left evaluate.LeftOut
	kinds := elasticKinds(in.Trials, in.Units, &left)
	if len(kinds) == 0 {
		return out, evaluate.Invalid("no workload of the trials has seconds under several numbers of workers or cores")
	}
	all := dividers()
	err = out.Fill(ctx, len(in.Loads)*in.Seeds, progress, func(ctx context.Context, i int) (string, []evaluate.Line, error) {
		load, seed := in.Loads[i/in.Seeds], in.Seed+uint64(i%in.Seeds) //nolint:gosec // a count
		jobs, plays := in.arrivals(kinds, load, seed), []evaluate.Line{}
		for _, p := range all {
			plays = append(plays, in.play(ctx, p, jobs, seed).With(evaluate.Line{"policy": p.name, "load": evaluate.Figure(load)}))
		}
		return fmt.Sprintf("seed %d at load %g", seed, load), plays, ctx.Err()
	})
	plays := evaluate.Split(out.Rows, func(l evaluate.Line) string { return fmt.Sprint(l["load"], l["policy"]) })
	out.Rows = nil
	for i, its := range plays {
		ratios := evaluate.Column(plays[i-i%len(all)], "mean_jct") // ours in the same seeds
		for k, l := range its {
			ratios[k] /= l.Figure("mean_jct")
		}
		row := evaluate.Average(its)
		row["low"], row["high"] = evaluate.Interval(evaluate.Column(its, "mean_jct"))
		row["ours_over"] = evaluate.Mean(ratios)
		row["ours_over_low"], row["ours_over_high"] = evaluate.Interval(ratios)
		out.Rows = append(out.Rows, row)
	}
	out.Summary = evaluate.Line{
		"workloads": len(kinds), "units": in.Units, "jobs": in.Jobs, "seeds": in.Seeds, "restart_seconds": evaluate.Figure(in.Restart), "left_out": []evaluate.Line(left),
	}
	return out, err
}

// kind is a workload whose jobs can have several sizes.
type kind struct {
	sizes []sized
	space *Space
}

// sized is one row of the trials: what a job takes under one setting.
type sized struct {
	units   int
	batch   float64 // 0: it has none
	seconds float64 // of a whole job
	epoch   float64 // seconds of an epoch
	step    float64 // seconds of a step
}

// elasticKinds reads the workloads that have seconds under two numbers of units or more, none above most.
func elasticKinds(tables []evaluate.Table, most int, left *evaluate.LeftOut) (out []*kind) {
	for _, t := range tables {
		for _, g := range t.Jobs() {
			k := &kind{}
			var settings []tuning.Settings
			for _, r := range g.Rows {
				units := int(cmp.Or(r.Knobs["replicas"], r.Knobs[tuning.GPUs], r.Knobs[tuning.Cores]).Float())
				seconds, ok := r.Outcome("seconds")
				if !ok || units < 1 || units > most {
					left.Add(g, []evaluate.Row{r}, fmt.Sprintf("it lacks seconds, or 1 to %d workers or cores", most))
					continue
				}
				m := sized{units: units, batch: r.Knobs["batch_size"].Float(), seconds: seconds, epoch: seconds}
				if n, ok := r.Outcome("epochs"); ok {
					m.epoch /= n
				}
				m.step = m.epoch
				if rate, ok := r.Outcome("samples_per_second"); ok && m.batch > 0 {
					m.step = m.batch / rate
				}
				seen := r.Knobs.Clone()
				if m.batch > 0 {
					seen["local_batch_size"] = tuning.Number(m.batch / float64(units))
				}
				k.sizes, settings = append(k.sizes, m), append(settings, seen)
			}
			if !slices.ContainsFunc(k.sizes, func(m sized) bool { return m.units != k.sizes[0].units }) {
				left.Add(g, nil, "none of its jobs can have two sizes")
				continue
			}
			k.space = NewSpace(settings)
			out = append(out, k)
		}
	}
	return out
}

// arrivals are jobs of all workloads alike, at random times; each owner asks for one of the recorded
// settings with at most a quarter of the cluster.
func (in AllocationInput) arrivals(kinds []*kind, load float64, seed uint64) []running {
	luck := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a simulation
	out := make([]running, in.Jobs)
	asked := 0.0
	for i := range out {
		k := kinds[luck.IntN(len(kinds))]
		out[i] = running{kind: k, at: luck.ExpFloat64(), left: 1, size: allocate.Waits}
		modest := 0
		for s, m := range k.sizes {
			if 4*m.units > max(in.Units, 4) {
				continue
			}
			if modest++; luck.IntN(modest) == 0 { // each as likely as the others
				out[i].asks = s
			}
		}
		asked += float64(k.sizes[out[i].asks].units) * k.sizes[out[i].asks].seconds
	}
	gap, now := asked/float64(in.Jobs)/load/float64(in.Units), 0.0
	for i := range out {
		now += out[i].at * gap
		out[i].at = now
	}
	return out
}
