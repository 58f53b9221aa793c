package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/durable"
	"pitchpipe/exporter/api"
)

// ErrFolder means that the folder cannot be recorded into.
var ErrFolder = errors.New("not a folder for this recording")

const mode = 0o644 // of the files of a recording: plan.json, runs/ID.json, and the tables

// open makes the folder, or checks that it holds the same plan.
func (cfg Config) open(p Plan) error {
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "runs"), 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	at := filepath.Join(cfg.Dir, "plan.json")
	var there Plan
	switch err := durable.ReadJSON(at, &there); {
	case errors.Is(err, fs.ErrNotExist):
		return durable.WriteJSON(at, p, mode)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	old, err := json.Marshal(there)
	wanted, failed := json.Marshal(p)
	if err != nil || failed != nil || !bytes.Equal(old, wanted) {
		return fmt.Errorf("%w: %s holds the runs of another plan (plan.json): want the same plan, or another folder", ErrFolder, cfg.Dir)
	}
	return nil
}

// path is the file of a run that has ended.
func (cfg Config) path(c Cell) string { return filepath.Join(cfg.Dir, "runs", c.ID+".json") }

func (cfg Config) write(tables []evaluate.Table) ([]string, error) {
	var out []string
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		var text bytes.Buffer
		if err := evaluate.Write(&text, t); err != nil {
			return out, err
		}
		at := filepath.Join(cfg.Dir, string(t.Format)+".csv")
		if err := durable.Write(at, text.Bytes(), mode); err != nil {
			return out, err
		}
		out = append(out, at)
	}
	return out, nil
}

// tables are the records of the runs. Columns that no run has are left out.
func tables(p Plan, runs []Run) []evaluate.Table {
	var first time.Time // when the first of the runs began
	for _, r := range runs {
		if !r.Start.IsZero() && (first.IsZero() || r.Start.Before(first)) {
			first = r.Start
		}
	}
	trials, curves, samples := evaluate.Table{Format: evaluate.Trials}, evaluate.Table{Format: evaluate.Curves}, evaluate.Table{Format: evaluate.Samples}
	events := map[string]bool{}
	for _, r := range runs {
		trials.Rows = append(trials.Rows, r.trial(first))
		if r.Failed != "" {
			continue // it is only in the trials
		}
		curves.Rows = append(curves.Rows, r.curve()...)
		samples.Rows = append(samples.Rows, r.sampled()...)
		for _, s := range r.Samples {
			for c := range s.Values {
				events[eventName(c)] = true
			}
		}
	}
	head := []string{"workload", "run", "machine", "input"}
	for _, name := range slices.Sorted(maps.Keys(p.Knobs)) {
		head = append(head, "knob_"+name)
	}
	trials.Columns = present(trials.Rows, head, []string{
		"epochs", "epoch_seconds", "seconds", "cpu_seconds", "joules", "watts", "loss", "quality", "failed", "repeat",
		"attempts", "others_cores", "steal_share", "disturbed", "node_cores", "started_seconds",
	})
	curves.Columns = present(curves.Rows, head, []string{"epoch", "seconds", "loss", "quality"})
	samples.Columns = present(samples.Rows, head, append([]string{"t_seconds"}, slices.Sorted(maps.Keys(events))...))
	return []evaluate.Table{trials, curves, samples}
}

// present are the columns of the head, and those of the others that a row has.
func present(rows []evaluate.Row, head, others []string) []string {
	return slices.DeleteFunc(slices.Concat(head, others), func(c string) bool {
		optional := c == "input" || slices.Contains(others, c)
		return optional && !slices.ContainsFunc(rows, func(r evaluate.Row) bool { _, ok := r.Float(c); return ok })
	})
}

// row is one of the run's, with the numbers that are known.
type row struct{ evaluate.Row }

func (r *row) set(column string, v float64, known bool) {
	if known {
		r.Set(column, v)
	}
}

func (r *row) report(e Epoch) {
	for column, v := range map[string]*float64{"loss": e.Loss, "quality": e.Quality} {
		if v != nil {
			r.Set(column, *v)
		}
	}
}

func (r Run) row() row {
	out := row{evaluate.Row{Workload: r.Cell.Workload, Machine: r.Machine, Run: r.Cell.ID, Knobs: r.Cell.settings()}}
	out.set("input", float64(r.Cell.Input), r.Cell.Input > 0)
	return out
}

// trial is its own row; first is when the first of all runs began.
func (r Run) trial(first time.Time) evaluate.Row {
	out := r.row()
	out.set("repeat", float64(r.Cell.Repeat), true)
	out.set("started_seconds", r.Start.Sub(first).Seconds(), !r.Start.IsZero())
	out.set("attempts", float64(r.Attempts), r.Attempts > 0)
	if n := r.Neighbours; n != nil {
		out.set("others_cores", n.Others, true)
		out.set("steal_share", n.Steal, true)
		out.set("node_cores", float64(n.NodeCores), true)
		out.set("disturbed", float64(evaluate.Yes(n.Disturbed != "")), true)
	}
	out.set("failed", float64(evaluate.Yes(r.Failed != "")), true)
	if r.Failed != "" {
		return out.Row
	}
	out.set("seconds", r.Seconds, true)
	if n := len(r.Epochs); n > 0 {
		out.set("epochs", float64(r.Epochs[n-1].Number), true)
		out.report(r.Epochs[n-1])
		length, ok := r.epochSeconds()
		out.set("epoch_seconds", length, ok)
	}
	out.set("cpu_seconds", r.CPUSeconds, r.CPUSeconds > 0)
	if n := len(r.Samples); n > 0 {
		end := r.Samples[n-1].Values
		cpu, ok := end[api.ColCPUSeconds]
		out.set("cpu_seconds", cpu, ok && r.CPUSeconds == 0)
		joules, ok := end[api.ColJoules]
		out.set("joules", joules, ok && r.measured())
		out.set("watts", joules/r.Seconds, ok && r.measured())
	}
	return out.Row
}

func (r Run) measured() bool { return r.Source != "" && r.Source != tuning.Modelled }

// epochSeconds is the median length of the epochs after the first.
func (r Run) epochSeconds() (float64, bool) {
	var lengths []float64
	for i, e := range r.Epochs {
		if i > 0 && e.Number == r.Epochs[i-1].Number+1 {
			lengths = append(lengths, e.Seconds-r.Epochs[i-1].Seconds)
		}
	}
	return float64(evaluate.Median(lengths)), len(lengths) > 0
}

func (r Run) curve() []evaluate.Row {
	var out []evaluate.Row
	for _, e := range r.Epochs {
		one := r.row()
		one.set("epoch", float64(e.Number), true)
		one.set("seconds", e.Seconds, true)
		one.report(e)
		out = append(out, one.Row)
	}
	return out
}

// sampled turns what grew into counts per interval. The first interval begins with the
// run, except for the node's own counters, which start at any time; those have no count
// there. Of a run that was watched from before it began the readings until then are what
// its first interval grows from.
func (r Run) sampled() []evaluate.Row {
	var out []evaluate.Row
	before := map[string]float64{}
	for _, s := range r.Samples {
		if r.Watched && !s.Time.After(r.Start) {
			maps.Copy(before, s.Values) // the shell that waited in front of the program
			continue
		}
		one := r.row()
		one.set("t_seconds", s.Time.Sub(r.Start).Seconds(), true)
		for column, v := range s.Values {
			last, seen := before[column]
			before[column] = v
			switch {
			case column == api.ColJoules && !r.measured():
			case api.Gauge(column):
				one.Set(eventName(column), v)
			case seen || !strings.HasPrefix(column, "node_"):
				one.Set(eventName(column), max(0, v-last))
			}
		}
		out = append(out, one.Row)
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
