package record

import (
	"maps"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// tables are the records of the runs. Columns that no run has are left out.
func tables(p Plan, runs []Run) []records.Table {
	var knobs []string
	for _, name := range slices.Sorted(maps.Keys(p.Knobs)) {
		knobs = append(knobs, "knob_"+name)
	}
	trials := records.Table{Format: records.Trials}
	curves := records.Table{Format: records.Curves}
	samples := records.Table{Format: records.Samples}
	first := begin(runs)
	for _, r := range runs {
		trials.Rows = append(trials.Rows, r.trial(first))
		if r.Failed != "" {
			continue // it is told in the trials alone
		}
		curves.Rows = append(curves.Rows, r.curve()...)
		samples.Rows = append(samples.Rows, r.sampled()...)
	}
	head := slices.Concat([]string{"workload", "run", "machine", "input"}, knobs)
	trials.Columns = present(trials.Rows, head, []string{
		"epochs", "epoch_seconds", "seconds", "cpu_seconds", "joules", "watts", "loss", "quality", "failed", "repeat",
		"attempts", "others_cores", "steal_share", "disturbed", "node_cores", "started_seconds",
	})
	curves.Columns = present(curves.Rows, head, []string{"epoch", "seconds", "loss", "quality"})
	columns := map[string]bool{}
	for _, r := range runs {
		for _, s := range r.Samples {
			for c := range s.Values {
				columns[eventName(c)] = true
			}
		}
	}
	samples.Columns = present(samples.Rows, head, append([]string{"t_seconds"}, slices.Sorted(maps.Keys(columns))...))
	return []records.Table{trials, curves, samples}
}

// begin is when the first of the runs began.
func begin(runs []Run) time.Time {
	var first time.Time
	for _, r := range runs {
		if !r.Start.IsZero() && (first.IsZero() || r.Start.Before(first)) {
			first = r.Start
		}
	}
	return first
}

// present are the columns that always stand, and those of the others that a row has.
func present(rows []records.Row, always, others []string) []string {
	out := slices.Clone(always)
	for _, c := range others {
		if slices.ContainsFunc(rows, func(r records.Row) bool { _, ok := r.Float(c); return ok }) {
			out = append(out, c)
		}
	}
	if !slices.ContainsFunc(rows, func(r records.Row) bool { _, ok := r.Float("input"); return ok }) {
		out = slices.DeleteFunc(out, func(c string) bool { return c == "input" })
	}
	return out
}

func (r Run) row() records.Row {
	out := records.Row{Workload: r.Cell.Workload, Machine: r.Machine, Run: r.Cell.ID, Knobs: r.Cell.settings()}
	if r.Cell.Input > 0 {
		out.Set("input", float64(r.Cell.Input))
	}
	return out
}

// trial is a row of its own; first is when the first of all runs began.
func (r Run) trial(first time.Time) records.Row {
	out := r.row()
	out.Set("repeat", float64(r.Cell.Repeat))
	if !r.Start.IsZero() {
		out.Set("started_seconds", r.Start.Sub(first).Seconds())
	}
	if r.Attempts > 0 {
		out.Set("attempts", float64(r.Attempts))
	}
	if n := r.Neighbours; n != nil {
		out.Set("others_cores", n.Others)
		out.Set("steal_share", n.Steal)
		out.Set("node_cores", float64(n.NodeCores))
		out.Set("disturbed", 0)
		if n.Disturbed != "" {
			out.Set("disturbed", 1)
		}
	}
	if r.Failed != "" {
		out.Set("failed", 1)
		return out
	}
	out.Set("failed", 0)
	out.Set("seconds", r.Seconds)
	if n := len(r.Epochs); n > 0 {
		last := r.Epochs[n-1]
		out.Set("epochs", float64(last.Number))
		if v, ok := r.epochSeconds(); ok {
			out.Set("epoch_seconds", v)
		}
		if last.Loss != nil {
			out.Set("loss", *last.Loss)
		}
		if last.Quality != nil {
			out.Set("quality", *last.Quality)
		}
	}
	if r.CPUSeconds > 0 {
		out.Set("cpu_seconds", r.CPUSeconds)
	}
	if len(r.Samples) == 0 {
		return out
	}
	end := r.Samples[len(r.Samples)-1].Values
	if v, ok := end[api.ColCPUSeconds]; ok && r.CPUSeconds == 0 {
		out.Set("cpu_seconds", v)
	}
	if v, ok := end[api.ColJoules]; ok && r.measured() {
		out.Set("joules", v)
		out.Set("watts", v/r.Seconds)
	}
	return out
}

// measured tells whether the joules are.
func (r Run) measured() bool { return r.Source != "" && r.Source != tuning.Modelled }

// epochSeconds is the median length of the epochs behind the first.
func (r Run) epochSeconds() (float64, bool) {
	var lengths []float64
	for i, e := range r.Epochs {
		if i > 0 && e.Number == r.Epochs[i-1].Number+1 {
			lengths = append(lengths, e.Seconds-r.Epochs[i-1].Seconds)
		}
	}
	if len(lengths) == 0 {
		return 0, false
	}
	slices.Sort(lengths)
	n := len(lengths)
	return (lengths[(n-1)/2] + lengths[n/2]) / 2, true
}

func (r Run) curve() []records.Row {
	var out []records.Row
	for _, e := range r.Epochs {
		row := r.row()
		row.Set("epoch", float64(e.Number))
		row.Set("seconds", e.Seconds)
		if e.Loss != nil {
			row.Set("loss", *e.Loss)
		}
		if e.Quality != nil {
			row.Set("quality", *e.Quality)
		}
		out = append(out, row)
	}
	return out
}

// sampled turns what grew into counts per interval. The first interval begins with the
// run, but for the node's own counters, which count from whenever they like; those
// have no count there. Of a run that was watched from before it began the readings until
// then are what its first interval grows from.
func (r Run) sampled() []records.Row {
	var out []records.Row
	before := map[string]float64{}
	for _, s := range r.Samples {
		if r.Watched && !s.Time.After(r.Start) {
			maps.Copy(before, s.Values) // the shell that waited in front of the program
			continue
		}
		row := r.row()
		row.Set("t_seconds", s.Time.Sub(r.Start).Seconds())
		for column, v := range s.Values {
			last, seen := before[column]
			before[column] = v
			switch {
			case column == api.ColJoules && !r.measured():
			case gauge(column):
				row.Set(eventName(column), v)
			case seen || !strings.HasPrefix(column, "node_"):
				row.Set(eventName(column), max(0, v-last))
			}
		}
		out = append(out, row)
	}
	return out
}

// eventName is how records call a column: perf's events by their own names.
func eventName(column string) string {
	if event, ok := api.EventOf(column); ok {
		return event
	}
	return column
}

func gauge(column string) bool {
	return slices.Contains([]string{
		api.ColRSS, api.ColCache, api.ColPeak, api.ColThreads, api.ColProcesses, api.ColAllocatedCores, api.ColGPUMemory, api.ColGPUs,
	}, column)
}
