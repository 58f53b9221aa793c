package models

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// The quantities that may stand for energy.
const (
	Joules      = "joules"       // as they were measured
	CoreSeconds = "core_seconds" // cores that were allotted, times seconds
	CPUSeconds  = "cpu_seconds"  // that were used
)

// Energies lists them.
func Energies() []string { return []string{CoreSeconds, CPUSeconds, Joules} }

// trial is one run: as the controller would have seen an epoch of it, and what it cost as a whole.
type trial struct {
	tuning.Trial
	seconds   float64     // of the whole run
	cost      float64     // logarithm of what the objective minimises
	sampled   *sampledRun // nil: it was not
	disturbed bool
}

// factorial is one input of one workload on one machine, measured under every setting in
// every repeat.
type factorial struct {
	workload, machine string
	input             int
	cores             int                      // of the machine
	runs              map[string]map[int]trial // by the key of the settings, and repeat
}

// name is what the input's jobs are called: each input is its own kind of job, so that the
// classes do not know which inputs belong to one workload.
func (s *factorial) name() string { return fmt.Sprintf("%s/%d", s.workload, s.input) }

func (s *factorial) keys() []string { return slices.Sorted(maps.Keys(s.runs)) }

func (s *factorial) repeats() []int {
	all := map[int]trial{}
	for _, runs := range s.runs {
		maps.Copy(all, runs)
	}
	return slices.Sorted(maps.Keys(all))
}

// repeated are the settings that were measured twice.
func (s *factorial) repeated() []string {
	return evaluate.Only(s.keys(), func(key string) bool { return len(s.runs[key]) >= 2 })
}

// cost of a setting in a repeat, NaN where it was not made.
func (s *factorial) cost(key string, repeat int) float64 {
	if t, ok := s.runs[key][repeat]; ok {
		return t.cost
	}
	return math.NaN()
}

// mean of the costs of a setting over repeats; NaN: one of them was not made.
func (s *factorial) mean(key string, repeats []int) float64 {
	return floats.Sum(tuning.Each(repeats, func(r int) float64 { return s.cost(key, r) })) / float64(len(repeats))
}

// cheapest is the setting of some with the least mean over the repeats, of those that were
// made in all of them. Empty: none.
func (s *factorial) cheapest(keys []string, repeats []int) string {
	settings := func(int) []string { return keys }
	return cheapest(repeats, settings, func(r int, key string) float64 { return s.cost(key, r) })
}

// cheapest is the setting that costs least in all together, logarithms that are NaN where
// it was not measured; of equals the first. Empty: none was measured in all.
func cheapest[T any](all []T, settings func(T) []string, cost func(T, string) float64) string {
	if len(all) == 0 {
		return ""
	}
	best, _ := evaluate.Least(settings(all[0]), func(setting string) float64 {
		return floats.Sum(tuning.Each(all, func(one T) float64 { return cost(one, setting) })) / float64(len(all))
	})
	return best
}

// whole are the repeats in which every setting was measured that was measured twice, and
// those settings.
func (s *factorial) whole() (repeats []int, keys []string) {
	keys = s.repeated()
	return evaluate.Only(s.repeats(), func(r int) bool {
		return !slices.ContainsFunc(keys, func(key string) bool { return math.IsNaN(s.cost(key, r)) })
	}), keys
}

// optimum is the setting that is cheapest in all repeats together.
func (s *factorial) optimum() string {
	repeats, keys := s.whole()
	return s.cheapest(keys, repeats)
}

// regret of a setting in one repeat: ln of its cost over that of the setting that was
// cheapest in the others. NaN: not measured.
func (s *factorial) regret(key string, judge int) float64 {
	repeats, keys := s.whole()
	others := slices.DeleteFunc(repeats, func(r int) bool { return r == judge })
	best := s.cheapest(evaluate.Only(keys, func(k string) bool { return !math.IsNaN(s.cost(k, judge)) }), others)
	return s.cost(key, judge) - s.cost(best, judge)
}

// over is the regret of one setting in each repeat.
func (s *factorial) over(key string) evaluate.Figure {
	return evaluate.Geometric(tuning.Each(s.repeats(), func(r int) float64 { return s.regret(key, r) }))
}

// hindsight is ln of the mean cost of a setting over that of the cheapest, both in all
// repeats. NaN: not measured.
func (s *factorial) hindsight(key string) float64 {
	repeats, _ := s.whole()
	return s.mean(key, repeats) - s.mean(s.optimum(), repeats)
}

// single is the setting that is cheapest for inputs together. Empty: they have none in
// common.
func single(all []*factorial) string {
	return cheapest(all, (*factorial).repeated, func(s *factorial, key string) float64 {
		repeats, keys := s.whole()
		if !slices.Contains(keys, key) {
			return math.NaN()
		}
		return s.mean(key, repeats)
	})
}

// spread is the standard deviation of costs between repeats of one setting.
func spread(all []*factorial) evaluate.Figure {
	squares, free := 0.0, 0.0
	for _, s := range all {
		for _, key := range s.keys() {
			repeats := slices.Sorted(maps.Keys(s.runs[key]))
			mean := tuning.Sum(repeats, func(r int) float64 { return s.runs[key][r].cost / float64(len(repeats)) })
			for _, r := range repeats {
				squares += (s.runs[key][r].cost - mean) * (s.runs[key][r].cost - mean)
			}
			free += float64(len(repeats) - 1)
		}
	}
	return evaluate.Figure(math.Sqrt(squares / free))
}

// gather sorts the trials by input. Failed runs do not count; those whose cost was not
// measured are listed. Each recording has its own repeats. Inputs have the numbers that the
// tables give them, or, of a workload whose inputs are words, those of their places.
func (in RegretInput) gather(sampled sampledRuns) ([]*factorial, evaluate.LeftOut, error) {
	at := map[[3]string]*factorial{}
	var out []*factorial
	var left evaluate.LeftOut
	offset, cores, inputs := 0, map[string]int{}, map[string][]string{}
	for _, t := range in.Trials {
		next := offset
		for _, r := range t.Rows {
			if !slices.Contains(inputs[r.Workload], r.Input()) && r.Input() != "" {
				inputs[r.Workload] = append(inputs[r.Workload], r.Input())
			}
			s := at[subject(r)]
			if s == nil {
				s = &factorial{
					workload: r.Workload, machine: r.Machine, input: 1 + slices.Index(inputs[r.Workload], r.Input()),
					runs: map[string]map[int]trial{},
				}
				if v, ok := r.Float("input"); ok && v == math.Trunc(v) {
					s.input = int(v)
				}
				at[subject(r)] = s
				out = append(out, s)
			}
			node, _ := r.Float("node_cores")
			cores[r.Machine] = max(cores[r.Machine], int(node), r.Knobs[tuning.Cores].Int())
			one, why := in.trial(r)
			if why != "" {
				left.Add(evaluate.Group{File: t.File, Workload: s.name(), Machine: r.Machine}, []evaluate.Row{r}, why)
			}
			if one == nil {
				continue
			}
			one.sampled = sampled[runOf(t, r)]
			repeat, ok := s.add(r, *one, offset)
			if !ok {
				number, _ := r.Float("repeat")
				return nil, nil, evaluate.Invalid("%s:%d: %s has repeat %g of %s twice; want another number for each repeat", t.File, r.Line, s.name(), number, r.Knobs.Key())
			}
			next = max(next, repeat+1)
		}
		offset = next
	}
	slices.SortFunc(out, func(a, b *factorial) int {
		return cmp.Or(cmp.Compare(a.workload, b.workload), cmp.Compare(a.input, b.input), cmp.Compare(a.machine, b.machine))
	})
	for _, s := range out {
		s.cores = cores[s.machine]
	}
	return out, left, nil
}

// add keeps a run as the repeat that its row says, else as the next that is free. False:
// there is such a repeat already.
func (s *factorial) add(r evaluate.Row, one trial, offset int) (repeat int, ok bool) {
	key := r.Knobs.Key()
	if s.runs[key] == nil {
		s.runs[key] = map[int]trial{}
	}
	number, numbered := r.Float("repeat")
	repeat = offset + int(number)
	_, taken := s.runs[key][repeat]
	if taken && numbered {
		return 0, false
	}
	for taken {
		repeat++
		_, taken = s.runs[key][repeat]
	}
	s.runs[key][repeat] = one
	return repeat, true
}

// trial reads what a run took: as a whole, and an epoch of it. Without epochs the run is one.
// Nil: it is not a measurement; the words say why unless it failed.
func (in RegretInput) trial(r evaluate.Row) (*trial, string) {
	disturbed, _ := r.Float("disturbed")
	if r.Failed() || disturbed != 0 && in.Undisturbed {
		return nil, ""
	}
	seconds, _ := r.Float("seconds")
	if !(seconds > 0) {
		return nil, "no seconds above 0"
	}
	epoch, _ := r.Float("epoch_seconds")
	epochs, _ := r.Float("epochs")
	if !(epoch > 0) || !(epochs >= 1) {
		epoch, epochs = seconds, 1
	}
	one := trial{
		Trial:   tuning.Trial{Settings: r.Knobs, Epochs: int(epochs), Seconds: epoch},
		seconds: seconds, disturbed: disturbed != 0,
	}
	energy := r.Knobs[tuning.Cores].Float() * seconds
	if in.Energy != CoreSeconds {
		energy, _ = r.Float(in.Energy)
	}
	if !(energy > 0) || math.IsInf(energy, 0) {
		energy = math.NaN()
	} else {
		one.Joules, one.Source = new(tuning.Joules(energy*epoch/seconds)), in.Energy
	}
	if one.cost = in.Measure.Log(in.Measure.Spent(seconds, energy, r.Knobs)); math.IsInf(one.cost, 0) {
		return nil, "no " + in.Energy + ", which the objective needs"
	}
	return &one, ""
}
