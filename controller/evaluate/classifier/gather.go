package classifier

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/profile/counters"
	"pitchpipe/controller/tuning"
)

// execution is one whole run as it was recorded.
type execution struct {
	workload, run string
	machine       string
	knobs         tuning.Settings
	input         float64 // which of its inputs; 0 where there are no such
	nth           int     // among the executions of one workload under the same settings, from 0
	intervals     []interval
	events        []string // columns that the machine's runs have
	profile       tuning.Profile
}

// interval is what was counted in one row; what is missing is missing.
type interval map[string]float64

// widespread is the share of a machine's runs that must have an event for it to be
// one of the machine's set. An event that only one suite was recorded with would tell
// the suite and not the program.
const widespread = 0.9

// gather makes one profile of each run. A run is one attempt under one setting.
func gather(tables []records.Table) ([]execution, error) {
	var out []execution
	seen := map[string]string{}
	for _, t := range tables {
		for _, rows := range records.Runs(t.Rows) {
			if before, ok := seen[rows[0].Run]; ok {
				return nil, fmt.Errorf("%w: %s:%d: run %q is in %s too", records.ErrInvalid, t.File, rows[0].Line, rows[0].Run, before)
			}
			seen[rows[0].Run] = t.File
			e, err := one(t, rows)
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b execution) int { return cmp.Compare(a.run, b.run) })
	number(out)
	describe(out)
	return out, nil
}

func one(t records.Table, rows []records.Row) (execution, error) {
	first := rows[0]
	e := execution{workload: first.Workload, run: first.Run, machine: first.Machine, knobs: first.Knobs}
	e.input, _ = first.Float("input")
	for _, r := range rows {
		if r.Workload != e.workload || r.Machine != e.machine || !r.Knobs.Equal(e.knobs) {
			return e, fmt.Errorf("%w: %s:%d: run %q changes its workload, machine or settings; want one run for each",
				records.ErrInvalid, t.File, r.Line, r.Run)
		}
		counts := interval{}
		for _, c := range t.Columns {
			if v, ok := r.Float(c); ok && !strings.HasPrefix(c, "knob_") {
				counts[c] = v
			}
		}
		e.intervals = append(e.intervals, counts)
	}
	return e, nil
}

func number(all []execution) {
	count := map[string]int{}
	for i := range all {
		key := all[i].setting()
		all[i].nth = count[key]
		count[key]++
	}
}

// setting names what two executions must share to be repeats of each other.
func (e execution) setting() string {
	return strings.Join([]string{e.workload, e.machine, e.knobs.Key()}, "\x00")
}

// describe gives every execution its profile.
func describe(all []execution) {
	byMachine := map[string][]int{}
	for i, e := range all {
		byMachine[e.machine] = append(byMachine[e.machine], i)
	}
	for _, machine := range slices.Sorted(maps.Keys(byMachine)) {
		have := map[string]int{}
		for _, i := range byMachine[machine] {
			for event := range all[i].total() {
				have[event]++
			}
		}
		var set []string
		for event, n := range have {
			if float64(n) >= widespread*float64(len(byMachine[machine])) {
				set = append(set, event)
			}
		}
		slices.Sort(set)
		for _, i := range byMachine[machine] {
			all[i].events = set
			all[i].profile = all[i].describe(all[i].intervals)
		}
	}
}

// total sums the events over the run. An event that is missing in any interval is
// missing: a sum over others would be too low.
func (e execution) total() map[string]float64 { return total(e.intervals) }

func total(intervals []interval) map[string]float64 {
	out, n := map[string]float64{}, map[string]int{}
	for _, counts := range intervals {
		for event, v := range counts {
			if counted(event) {
				out[event] += v
				n[event]++
			}
		}
	}
	maps.DeleteFunc(out, func(event string, _ float64) bool { return n[event] < len(intervals) })
	return out
}

// counted tells whether a column counts an event; the others are gauges and labels.
func counted(column string) bool {
	return !slices.Contains([]string{"t_seconds", "watts", "joules", "temperature_celsius", "repeat", "input", "task-clock", "cpu-clock"}, column)
}

// describe makes the profile of some of the intervals.
func (e execution) describe(intervals []interval) tuning.Profile {
	if !e.hardware() {
		return e.account(intervals)
	}
	counts := total(intervals)
	maps.DeleteFunc(counts, func(event string, _ float64) bool { return !slices.Contains(e.events, event) })
	return tuning.Profile{
		Schema: counters.Schema(e.events), Machine: e.machine, Settings: e.knobs,
		Features: counters.Features(counts), Samples: len(intervals),
	}
}

// hardware tells whether hardware counters were recorded.
func (e execution) hardware() bool { return slices.Contains(e.events, counters.Instructions) }

// sample is what the classes are learned from.
func (e execution) sample() classify.Sample {
	return classify.Sample{Profile: e.profile, Run: e.run, Kind: e.workload}
}
