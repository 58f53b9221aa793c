package regret

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
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
	key       runKey
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

// gather sorts the trials by subject. Runs that failed are no runs; those whose cost was
// not measured are told of. Repeats of several recordings are repeats of their own.
func (in Input) gather() ([]*subject, []evaluate.LeftOut, error) {
	at := map[[3]string]*subject{}
	var out []*subject
	left := []evaluate.LeftOut{}
	numbers := inputNumbers(in.Trials)
	of := in.recordings(in.Trials)
	offset := 0
	for i, t := range in.Trials {
		next := offset
		for _, r := range t.Rows {
			key := [3]string{r.Workload, r.Machine, r.Input()}
			s := at[key]
			if s == nil {
				s = &subject{
					workload: r.Workload, machine: r.Machine, input: numbers[[2]string{r.Workload, r.Input()}],
					cells: map[string]map[int]measured{}, logs: map[string]map[int]float64{},
				}
				at[key] = s
				out = append(out, s)
			}
			repeat, why, err := in.add(s, t, r, of[i], offset)
			if err != nil {
				return nil, nil, err
			}
			if why != "" {
				left = evaluate.Leave(left, evaluate.LeftOut{Data: t.File, Workload: s.name(), Machine: r.Machine, Rows: 1, Line: r.Line, Why: why})
			}
			next = max(next, repeat+1)
		}
		offset = next
	}
	slices.SortFunc(out, (*subject).compare)
	machines := map[string]int{}
	for _, s := range out {
		machines[s.machine] = max(machines[s.machine], s.cores)
	}
	for _, s := range out {
		s.cores = machines[s.machine]
	}
	return out, left, nil
}

// inputNumbers are those that the tables give to inputs, or, of a workload whose inputs
// are words, their places.
func inputNumbers(tables []records.Table) map[[2]string]int {
	out, places := map[[2]string]int{}, map[string]int{}
	for _, t := range tables {
		for _, r := range t.Rows {
			key := [2]string{r.Workload, r.Input()}
			if _, known := out[key]; known || key[1] == "" {
				continue
			}
			places[r.Workload]++
			out[key] = places[r.Workload]
			if v, ok := r.Float("input"); ok && v == math.Trunc(v) {
				out[key] = int(v)
			}
		}
	}
	return out
}

// add keeps a run: its repeat, and why it cannot be used although it did not fail.
func (in Input) add(s *subject, t records.Table, r records.Row, recording string, offset int) (repeat int, why string, err error) {
	nodeCores, _ := r.Float("node_cores")
	s.cores = max(s.cores, int(nodeCores), r.Knobs[tuning.Cores].Int())
	disturbed, _ := r.Float("disturbed")
	if r.Failed() || disturbed != 0 && in.Undisturbed {
		return offset, "", nil
	}
	m, ok := in.measure(r)
	if !ok {
		return offset, "no seconds above 0", nil
	}
	m.disturbed, m.key = disturbed != 0, keyOf(recording, r)
	joules := math.NaN()
	if m.whole.Joules != nil {
		joules = float64(*m.whole.Joules)
	}
	v := in.Measure.Log(in.Measure.Spent(m.whole.Seconds, joules, r.Knobs))
	if math.IsInf(v, 0) {
		return offset, "no " + in.Energy + ", which the objective needs", nil
	}
	key := r.Knobs.Key()
	if s.cells[key] == nil {
		s.cells[key], s.logs[key] = map[int]measured{}, map[int]float64{}
	}
	told, numbered := r.Float("repeat")
	repeat = offset + int(told)
	for _, taken := s.cells[key][repeat]; taken && !numbered; _, taken = s.cells[key][repeat] {
		repeat++
	}
	if _, twice := s.cells[key][repeat]; twice {
		return 0, "", fmt.Errorf("%w: %s:%d: %s has repeat %g of %s twice; want a number of its own for each repeat",
			records.ErrInvalid, t.File, r.Line, s.name(), told, key)
	}
	s.cells[key][repeat], s.logs[key][repeat] = m, v
	return repeat, "", nil
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
		settings: r.Knobs,
		whole:    tuning.Trial{Settings: r.Knobs, Epochs: 1, Seconds: seconds},
		epoch:    tuning.Trial{Settings: r.Knobs, Epochs: int(epochs), Seconds: epoch},
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
