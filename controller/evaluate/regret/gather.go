package regret

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"pitchpipe/controller/evaluate/records"
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

// measured is one run.
type measured struct {
	run       string
	settings  tuning.Settings
	whole     tuning.Trial // seconds and energy of the whole run: what it cost
	epoch     tuning.Trial // of an epoch: what the controller would have seen
	disturbed bool
}

// subject is one input of one workload on one machine.
type subject struct {
	workload, machine string
	input             int
	cores             int                         // of the machine
	cells             map[string]map[int]measured // by the key of the settings, and repeat
	logs              map[string]map[int]float64  // ln cost of the same
}

func (s *subject) compare(o *subject) int {
	return cmp.Or(cmp.Compare(s.workload, o.workload), cmp.Compare(s.input, o.input), cmp.Compare(s.machine, o.machine))
}

// name is what the input's jobs are called: each input is a kind of job of its own, so
// that nobody tells the classes which inputs are of one workload.
func (s *subject) name() string { return fmt.Sprintf("%s/%d", s.workload, s.input) }

// repeats are those of any setting.
func (s *subject) repeats() []int {
	all := map[int]bool{}
	for _, cells := range s.cells {
		for r := range cells {
			all[r] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

func (s *subject) keys() []string { return slices.Sorted(maps.Keys(s.cells)) }

// usable tells whether there is something to choose and something to judge it by.
func (s *subject) usable(own string) bool {
	twice := 0
	for _, cells := range s.cells {
		if len(cells) >= 2 {
			twice++
		}
	}
	return twice >= 2 && len(s.cells[own]) >= 2
}

// gather sorts the trials by subject. Runs that failed, or whose cost was not measured,
// are no runs.
func (in Input) gather() ([]*subject, error) {
	at := map[[3]string]*subject{}
	var out []*subject
	for _, t := range in.Trials {
		for _, r := range t.Rows {
			input, _ := r.Float("input")
			key := [3]string{r.Workload, r.Machine, fmt.Sprint(input)}
			s := at[key]
			if s == nil {
				s = &subject{
					workload: r.Workload, machine: r.Machine, input: int(input),
					cells: map[string]map[int]measured{}, logs: map[string]map[int]float64{},
				}
				at[key] = s
				out = append(out, s)
			}
			if err := in.add(s, t, r); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(out, (*subject).compare)
	machines := map[string]int{}
	for _, s := range out {
		machines[s.machine] = max(machines[s.machine], s.cores)
	}
	for _, s := range out {
		s.cores = machines[s.machine]
	}
	return out, nil
}

func (in Input) add(s *subject, t records.Table, r records.Row) error {
	nodeCores, _ := r.Float("node_cores")
	s.cores = max(s.cores, int(nodeCores), r.Knobs[tuning.Cores].Int())
	failed, _ := r.Float("failed")
	disturbed, _ := r.Float("disturbed")
	if failed != 0 || disturbed != 0 && in.Undisturbed {
		return nil
	}
	m, ok := in.measure(r)
	if !ok {
		return nil
	}
	m.disturbed = disturbed != 0
	one := tuning.Joules(1)
	v, ok := m.whole.LogRatio(tuning.Trial{Seconds: 1, Joules: &one, Source: m.whole.Source}, in.Objective, in.Weight)
	if !ok {
		return nil
	}
	repeat, _ := r.Float("repeat")
	key := r.Knobs.Key()
	if s.cells[key] == nil {
		s.cells[key], s.logs[key] = map[int]measured{}, map[int]float64{}
	}
	if _, twice := s.cells[key][int(repeat)]; twice {
		return fmt.Errorf("%w: %s:%d: %s has repeat %d of %s twice; want a number of its own for each repeat",
			records.ErrInvalid, t.File, r.Line, s.name(), int(repeat), key)
	}
	s.cells[key][int(repeat)], s.logs[key][int(repeat)] = m, v
	return nil
}

// measure reads what a run took: as a whole, and an epoch of it. Where the epochs were
// not told, the run is one epoch.
func (in Input) measure(r records.Row) (measured, bool) {
	seconds, ok := r.Float("seconds")
	if !ok || !(seconds > 0) {
		return measured{}, false
	}
	epoch, told := r.Float("epoch_seconds")
	epochs, _ := r.Float("epochs")
	if !told || !(epoch > 0) || !(epochs >= 1) {
		epoch, epochs = seconds, 1
	}
	m := measured{
		run: r.Run, settings: r.Knobs,
		whole: tuning.Trial{Settings: r.Knobs, Epochs: 1, Seconds: seconds},
		epoch: tuning.Trial{Settings: r.Knobs, Epochs: int(epochs), Seconds: epoch},
	}
	energy := 0.0
	switch in.Energy {
	case CoreSeconds:
		energy = r.Knobs[tuning.Cores].Float() * seconds
	case CPUSeconds:
		energy, _ = r.Float("cpu_seconds")
	case Joules:
		energy, _ = r.Float("joules")
	}
	if energy > 0 && !math.IsInf(energy, 0) {
		whole, part := tuning.Joules(energy), tuning.Joules(energy*epoch/seconds)
		m.whole.Joules, m.whole.Source = &whole, in.Energy
		m.epoch.Joules, m.epoch.Source = &part, in.Energy
	}
	return m, true
}
