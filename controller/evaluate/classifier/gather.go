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
	workload, run string // run: the name, made different from all others'
	machine       string
	knobs         tuning.Settings
	input         string // which of its inputs; empty where there are no such
	nth           int    // among the executions of one workload under the same settings, from 0
	intervals     []interval
	counts        map[string]bool // columns of its table that count events
	events        []string        // columns that the machine's runs have
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
	var files []string
	names := map[string]int{}
	for _, t := range tables {
		if slices.Contains(files, t.File) {
			return nil, fmt.Errorf("%w: %s is named twice: its runs would be known by themselves", records.ErrInvalid, t.File)
		}
		files = append(files, t.File)
		counts := map[string]bool{}
		for _, c := range t.Columns {
			counts[c] = counted(c)
		}
		for _, rows := range records.Runs(t.Rows) {
			e, err := one(t, rows, counts)
			if err != nil {
				return nil, err
			}
			names[e.run]++
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b execution) int { return cmp.Compare(a.run, b.run) })
	tell(out, names)
	number(out)
	describe(out)
	return out, nil
}

// tell gives runs whose name others have too one of their own: names are those of a
// workload on a machine in a file, and no more.
func tell(all []execution, names map[string]int) {
	count := map[string]int{}
	for i := range all {
		e := &all[i]
		if names[e.run] < 2 {
			continue
		}
		name := strings.Join([]string{e.run, e.workload, e.machine, e.input, e.knobs.Key()}, " ")
		count[name]++
		if e.run = name; count[name] > 1 || names[name] > 0 {
			e.run = fmt.Sprintf("%s #%d", name, count[name])
		}
	}
}

func one(t records.Table, rows []records.Row, events map[string]bool) (execution, error) {
	first := rows[0]
	e := execution{workload: first.Workload, run: first.Run, machine: first.Machine, knobs: first.Knobs, input: first.Input(), counts: events}
	for _, r := range rows {
		if !r.Knobs.Equal(e.knobs) {
			return e, fmt.Errorf("%w: %s:%d: run %q changes its settings; want one run for each",
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

// total sums the events over the run.
func (e execution) total() map[string]float64 { return e.sum(e.intervals) }

// sum sums the events over intervals. An event that is missing in any of them is missing: a
// sum over others would be too low.
func (e execution) sum(intervals []interval) map[string]float64 {
	out, n := map[string]float64{}, map[string]int{}
	for _, counts := range intervals {
		for event, v := range counts {
			if e.counts[event] {
				out[event] += v
				n[event]++
			}
		}
	}
	maps.DeleteFunc(out, func(event string, _ float64) bool { return n[event] < len(intervals) })
	return out
}

// counted tells whether a column counts an event. The others are gauges, times and labels:
// summed over the intervals of a run they would say how long it was sampled.
func counted(column string) bool {
	if slices.Contains([]string{"task-clock", "cpu-clock", "t_seconds"}, column) {
		return false
	}
	words := strings.FieldsFunc(strings.ToLower(column), func(r rune) bool { return strings.ContainsRune("_-./: ()[]%", r) })
	if slices.Contains(words, "bytes") && !slices.Contains(words, "read") && !slices.Contains(words, "write") {
		return false // held, not moved
	}
	return len(words) > 0 && !strings.Contains(column, "%") &&
		!slices.ContainsFunc(words, func(w string) bool { return slices.Contains(gaugeWords(), w) })
}

// gaugeWords are those that names of gauges, times and labels have, and names of events
// have not: what is not an amount of something that happened in the interval.
func gaugeWords() []string {
	return []string{
		"watts", "watt", "power", "joules", "energy", "volts", "voltage", "amperes", "current",
		"celsius", "temperature", "temp", "kelvin", "fan", "rpm", "throttle",
		"mhz", "khz", "ghz", "hz", "frequency", "freq", "speed", "rate",
		"percent", "pct", "percentage", "share", "ratio", "fraction", "utilisation", "utilization", "util", "usage", "occupancy",
		"loadavg", "average", "avg", "mean", "ipc", "cpi", "mpki", "gbps", "mbps",
		"rss", "vms", "kib", "mib", "gib", "size", "free", "used", "available", "threads", "processes", "allocated",
		"seconds", "second", "time", "timestamp", "elapsed", "duration", "ms", "us", "ns",
		"repeat", "input", "seed", "index", "id", "pid", "tid", "epoch", "step", "iteration", "interval", "sample", "samples", "failed", "disturbed",
		"cores", "gpus", "nodes",
	}
}

// describe makes the profile of some of the intervals.
func (e execution) describe(intervals []interval) tuning.Profile {
	if !e.hardware() {
		return e.account(intervals)
	}
	counts := e.sum(intervals)
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
