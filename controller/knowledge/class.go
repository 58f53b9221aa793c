package knowledge

import (
	"math"

	"pitchpipe/controller/tuning"
)

// Target is the machine that an effect is asked for.
type Target struct {
	Machine string // kind of machine
	Cores   int    // of the node; 0 = unknown
}

// ClassEffects derives what each setting of the system knobs does to the jobs
// that belong, whatever their kind: sorted by LogRatio, the best first. own are
// the settings of the job that asks; nil compares each job with its own owner's.
//
// Cores and threads count as shares of the node, so that what was learned on one
// machine can be used on another of a different size: a quarter of 8 cores is a
// quarter of 16. Counts are exact where the machine is the same kind or has as
// many cores; elsewhere they are rounded to whole ones, at least one, and an
// observation of a node of unknown size is left out. Memory, GPUs and the power
// limit do not travel, and neither do hyperparameters: a trial that changed one
// together with its cores teaches nothing about the cores.
func ClassEffects(obs []Observation, belongs func(Observation) bool, own tuning.Settings, to Target, m tuning.Measure, a Aging) []tuning.Effect {
	var members []Observation
	for _, o := range obs {
		if belongs(o) {
			members = append(members, o)
		}
	}
	sums := map[string]*tally{}
	for _, r := range runs(members) {
		scale, ok := to.scale(r)
		if !ok {
			continue
		}
		base, ok := r.base(own, scale)
		if !ok {
			continue
		}
		rest := others(base.Settings)
		view := func(s tuning.Settings) tuning.Settings {
			if !others(s).Equal(rest) {
				return nil
			}
			return scaled(s, scale)
		}
		r.collect(sums, base, view, m, a)
	}
	return effects(sums, a)
}

// scale is how many cores of the target stand for one of the run's machine.
func (t Target) scale(r run) (float64, bool) {
	switch {
	case r.machine == t.Machine && r.machine != "" || r.cores == t.Cores && r.cores > 0:
		return 1, true
	case r.cores > 0 && t.Cores > 0:
		return float64(t.Cores) / float64(r.cores), true
	default:
		return 0, false
	}
}

// base is the trial that the others of the run are compared with: of those that
// differ from the owner's settings in nothing but cores and threads, the one
// whose cores and threads are those of the asking job.
func (r run) base(own tuning.Settings, scale float64) (tuning.Trial, bool) {
	reference, ok := r.reference()
	if !ok || own == nil {
		return reference, ok
	}
	rest := others(reference.Settings)
	asked := scaled(own, 1)
	best := tuning.Trial{}
	for _, t := range r.trials {
		if t.Epochs > best.Epochs && others(t.Settings).Equal(rest) && agrees(scaled(t.Settings, scale), asked) {
			best = t
		}
	}
	return best, best.Epochs > 0
}

// agrees reports whether two settings of cores and threads are the same as far as
// both name them, cores at least.
func agrees(a, b tuning.Settings) bool {
	if a[tuning.Cores] != b[tuning.Cores] {
		return false
	}
	x, inA := a[tuning.Threads]
	y, inB := b[tuning.Threads]
	return !inA || !inB || x == y
}

// travels reports whether a knob's effect can be used by other jobs.
func travels(name string) bool { return name == tuning.Cores || name == tuning.Threads }

// others are the knobs that must be equal for cores and threads to be compared.
func others(s tuning.Settings) tuning.Settings {
	return s.Only(func(name string) bool { return !travels(name) && name != tuning.Memory })
}

// scaled are the cores and threads in counts of another machine.
func scaled(s tuning.Settings, scale float64) tuning.Settings {
	out := s.Only(travels)
	for name, v := range out {
		if v.IsNumber() {
			out[name] = tuning.Number(math.Max(1, math.Round(v.Float()*scale)))
		}
	}
	return out
}
