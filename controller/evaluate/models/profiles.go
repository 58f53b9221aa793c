package models

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/profile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// moment is one start time for every recorded run: nothing has aged.
func moment() time.Time { return time.Unix(0, 0).UTC() }

// accounted makes the profile of a run that was recorded with the exporter's columns, by
// package profile as the controller makes it. Epochs end at the given seconds, the first of
// them is warm-up; without any each interval is an epoch. Where the cores of the node are
// known, an epoch that others disturbed does not count; if all of them are, they count and
// the profile is flagged.
func accounted(intervals []evaluate.Row, ends []float64, spec profile.Spec) tuning.Profile {
	after := func(seconds float64) time.Time { return moment().Add(time.Duration(seconds * float64(time.Second))) }
	until := func(row evaluate.Row) float64 { v, _ := row.Float("t_seconds"); return v }
	w := api.Window{Job: api.Job{ID: intervals[0].Run, Attempt: 1, Started: moment(), Ended: true}, Schema: api.SchemaAccounting}
	grown := map[string]float64{}
	if len(ends) == 0 {
		ends = tuning.Each(intervals, until)
	}
	for i, row := range intervals {
		values := map[string]float64{}
		for column, cell := range row.Cells {
			v := cell.Float()
			switch {
			case !cell.IsNumber(), column == "t_seconds", column == "input":
			case api.Gauge(column):
				values[column] = v
			default:
				grown[column] += v
				values[column] = grown[column]
			}
		}
		w.Samples = append(w.Samples, api.Sample{Seq: uint64(i + 1), Time: after(until(row)), Values: values}) //nolint:gosec // an index
	}
	spec.Epochs = len(ends)
	var epochs []tuning.Epoch
	last := moment()
	for i, end := range ends {
		e := tuning.Epoch{Number: i + 1, Attempt: 1, Start: last, End: after(end), Settings: spec.Settings, Warmup: i == 0 && len(ends) > 3}
		e.Polluted = spec.NodeCores > 0 && profile.Disturbed(w, e, spec) != ""
		epochs, last = append(epochs, e), e.End
	}
	p, why := profile.Profile(w, epochs, spec) // what there is: a run that was too short is flagged
	if why != tuning.ReasonPolluted {
		return p
	}
	for i := range epochs {
		epochs[i].Polluted = false
	}
	if p, _ = profile.Profile(w, epochs, spec); !slices.Contains(p.Flags, tuning.FlagContended) {
		p.Flags = append(p.Flags, tuning.FlagContended)
	}
	return p
}

// execution is one whole run as it was recorded: one attempt under one setting.
type execution struct {
	evaluate.Row                // the first, but that the name of the run is different from all others'
	nth          int            // among the executions of one workload under the same settings, from 0
	intervals    []evaluate.Row // all
	events       []string       // columns that count events and that the machine's runs have
	profile      tuning.Profile
}

// widespread is the share of a machine's runs that must have an event for it to be
// one of the machine's set. An event that only one suite was recorded with would identify
// the suite and not the program.
const widespread = 0.9

func executions(tables []evaluate.Table) ([]execution, error) {
	var out []execution
	names := map[string]int{}
	for _, t := range tables {
		counts := evaluate.Only(t.Columns, counted)
		for _, rows := range evaluate.Runs(t.Rows) {
			first := rows[0]
			if r, changed := tuning.First(rows, func(r evaluate.Row) bool { return !r.Knobs.Equal(first.Knobs) }); changed {
				return nil, evaluate.Invalid("%s:%d: run %q changes its settings; want one run for each", t.File, r.Line, r.Run)
			}
			names[first.Run]++
			out = append(out, execution{Row: first, events: counts, intervals: rows})
		}
	}
	slices.SortStableFunc(out, func(a, b execution) int { return cmp.Compare(a.Run, b.Run) })
	repeats := map[string]int{}
	for i := range out {
		e := &out[i]
		if names[e.Run] > 1 { // others have the name too: it is that of a run of a workload on a machine in a file
			e.Run = fmt.Sprintf("%s #%d", e.Run, i)
		}
		e.nth = repeats[e.setting()]
		repeats[e.setting()]++
	}
	describe(out)
	return out, nil
}

// setting names what two executions must share to be repeats of each other.
func (e execution) setting() string {
	return strings.Join([]string{e.Workload, e.Machine, e.Knobs.Key()}, "\x00")
}

func describe(all []execution) {
	sets := map[string][]string{} // by machine
	for _, same := range evaluate.Split(all, func(e execution) string { return e.Machine }) {
		have := map[string]int{}
		for _, e := range same {
			for event := range e.sum(e.intervals) {
				have[event]++
			}
		}
		often := func(event string) bool { return float64(have[event]) >= widespread*float64(len(same)) }
		sets[same[0].Machine] = evaluate.Only(slices.Sorted(maps.Keys(have)), often)
	}
	for i := range all {
		all[i].events = sets[all[i].Machine]
		all[i].profile = all[i].describe(all[i].intervals)
	}
}

// sum sums the events over intervals. An event that is missing in any of them is missing: a
// sum over others would be too low.
func (e execution) sum(intervals []evaluate.Row) map[string]float64 {
	out := map[string]float64{}
	for _, event := range e.events {
		sum, whole := 0.0, true
		for _, r := range intervals {
			v, ok := r.Float(event)
			sum, whole = sum+v, whole && ok
		}
		if whole {
			out[event] = sum
		}
	}
	return out
}

// describe makes the profile of some of the intervals: of hardware counters where they were
// recorded, else of the exporter's columns.
func (e execution) describe(intervals []evaluate.Row) tuning.Profile {
	if !e.hardware() {
		return accounted(intervals, nil, profile.Spec{Settings: e.Knobs, Machine: e.Machine})
	}
	return tuning.Profile{
		Schema: countSchema(e.events), Machine: e.Machine, Settings: e.Knobs,
		Features: countFeatures(e.sum(intervals)), Samples: len(intervals),
	}
}

func (e execution) hardware() bool { return slices.Contains(e.events, eventInstructions) }

// counted reports whether a column counts an event. The others are gauges, times and
// labels: summed over the intervals of a run they would say how long it was sampled.
func counted(column string) bool {
	if slices.Contains([]string{"task-clock", "cpu-clock", "t_seconds"}, column) {
		return false
	}
	words := strings.FieldsFunc(strings.ToLower(column), func(r rune) bool { return strings.ContainsRune("_-./: ()[]%", r) })
	if slices.Contains(words, "bytes") && !slices.Contains(words, "read") && !slices.Contains(words, "write") {
		return false // held, not moved
	}
	gauges := []string{ // what names of gauges, times and labels have, and names of events have not
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
	return len(words) > 0 && !strings.Contains(column, "%") &&
		!slices.ContainsFunc(words, func(w string) bool { return slices.Contains(gauges, w) })
}

// sampledRun is one run that was sampled, and the ends of its epochs where they are known.
type sampledRun struct {
	intervals []evaluate.Row
	ends      []float64
}

// sampledRuns has the runs by folder, machine, workload and name: tables of one recording are in one folder.
type sampledRuns map[[4]string]*sampledRun

func runOf(t evaluate.Table, r evaluate.Row) [4]string {
	return [4]string{filepath.Dir(t.File), r.Machine, r.Workload, r.Run}
}

func (in RegretInput) sampled() (sampledRuns, error) {
	out := sampledRuns{}
	for _, t := range in.Samples {
		for _, rows := range evaluate.Runs(t.Rows) {
			r := rows[0]
			if out[runOf(t, r)] != nil {
				return out, evaluate.Invalid("%s:%d: run %q of %s on %s stands twice", t.File, r.Line, r.Run, r.Workload, r.Machine)
			}
			out[runOf(t, r)] = &sampledRun{intervals: rows}
		}
	}
	for _, t := range in.Curves {
		for _, r := range t.Rows {
			end, ok := r.Float("seconds")
			if run := out[runOf(t, r)]; run != nil && ok {
				run.ends = append(run.ends, end)
			}
		}
	}
	return out, nil
}

// The events that every other is measured against.
const (
	eventCycles       = "cycles"
	eventInstructions = "instructions"
)

// million instructions is what events are counted per.
const million = 1e6

// eventOffset is added to an event's count per million instructions before the logarithm
// is taken: what would cost one per cent of the time at one cycle an instruction.
// Below it an event is noise, which a bare logarithm would blow up.
func eventOffset(event string) float64 {
	cycles := 1.0 // that an event takes, about
	switch {
	case strings.HasPrefix(event, "LLC-") && strings.HasSuffix(event, "-misses"), event == "node-loads", event == "node-load-misses":
		cycles = 200
	case strings.Contains(event, "TLB"), strings.Contains(event, "tlb"):
		cycles = 30
	case strings.HasSuffix(event, "-misses"):
		cycles = 20
	case strings.Contains(event, "exception"), strings.Contains(event, "fault"),
		strings.HasSuffix(event, "-switches"), strings.HasSuffix(event, "-migrations"):
		cycles = 1000
	}
	return 0.01 * million / cycles
}

// countFeatures are made of the counts of one stretch of a run: ipc is
// ln(instructions/cycles), and each other event e gives
// ln(offset + 1e6·e/instructions), which hardly depends on the clock. An event that is
// not in counts, negative or no number gives no feature; without instructions there
// are none at all.
func countFeatures(counts map[string]float64) map[string]float64 {
	out := map[string]float64{}
	instructions := counts[eventInstructions]
	if !(instructions > 0) || math.IsInf(instructions, 0) {
		return out
	}
	for event, n := range counts {
		switch {
		case !(n >= 0) || math.IsInf(n, 0), event == eventInstructions, event == eventCycles && n == 0:
		case event == eventCycles:
			out["ipc"] = math.Log(instructions / n)
		default:
			out[event] = math.Log(eventOffset(event) + million*n/instructions)
		}
	}
	return out
}

// countSchema names a set of events, in whatever order: profiles of different sets are not
// compared.
func countSchema(events []string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(events)))
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.Join(sorted, ","))) // documented never to fail
	return fmt.Sprintf("hw/1/%d-%08x", len(sorted), h.Sum32())
}
