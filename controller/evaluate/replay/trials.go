package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// piece is what was recorded of one workload with one input on one machine, in one part
// of its table: a job has such a part and never changes it.
type piece struct {
	evaluate.Group
	table     evaluate.Table
	part      string          // such as "gpus=2"; empty: nothing distinguishes parts
	wanted    tuning.Settings // what the owner asked for, as far as that is known
	target    evaluate.Row    // of targets.csv
	reference evaluate.Row    // of reference.csv
}

func (p piece) title() string {
	name := p.Name()
	if p.Machine != "" {
		name += " on " + p.Machine
	}
	if p.part != "" {
		name += " with " + p.part
	}
	return name
}

// partOf names what neither moves nor is searched: each value of these knobs is its own job.
func partOf(r evaluate.Row) string {
	return r.Knobs.Only(func(name string) bool { return slices.Contains([]string{tuning.GPUs, "core_type", "schedule"}, name) }).Key()
}

// pieces splits tables, in the order of the first row of each. The owner's settings are
// those given, then those of targets.csv, then the fair share of the table.
func pieces(tables []evaluate.Table, own tuning.Settings) (out []piece, err error) {
	for _, t := range tables {
		targets, err := beside(t, "targets.csv")
		if err != nil {
			return nil, err
		}
		references, err := beside(t, "reference.csv")
		if err != nil {
			return nil, err
		}
		fair := fairShare(t)
		for _, g := range t.Jobs() {
			target, wanted := about(targets, g), fair
			if d := defaults(target); len(d) > 0 {
				wanted = d
			}
			for _, rows := range evaluate.Split(g.Rows, partOf) {
				p := piece{Group: g, table: t, part: partOf(rows[0]), wanted: wanted.Merge(own), target: target, reference: about(references, g)}
				p.Rows = rows
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// usable are the rows of a group that nothing is wrong with. The others are left out.
func usable(g evaluate.Group, left *evaluate.LeftOut, wrong func(evaluate.Row) string) []evaluate.Row {
	return evaluate.Only(g.Rows, func(r evaluate.Row) bool {
		why := wrong(r)
		if why != "" {
			left.Add(g, []evaluate.Row{r}, why)
		}
		return why == ""
	})
}

// beside is a table in the folder of the trials: what is known of workloads
// on machines (targets.csv), or what another tuner was published to reach (reference.csv).
// It is empty where there is none.
func beside(t evaluate.Table, name string) (evaluate.Table, error) {
	other, err := evaluate.Read(filepath.Join(filepath.Dir(t.File), name), evaluate.Trials)
	if errors.Is(err, fs.ErrNotExist) {
		return evaluate.Table{}, nil
	}
	if err != nil {
		return evaluate.Table{}, fmt.Errorf("next to the trials: %w", err)
	}
	return other, nil
}

// about is what a table knows of a group, empty where it knows nothing.
func about(t evaluate.Table, g evaluate.Group) evaluate.Row {
	r, _ := tuning.First(t.Rows, func(r evaluate.Row) bool { return r.Workload == g.Workload && r.Machine == g.Machine })
	return r
}

// numberOf is that of the first column with an ending, NaN where it is not above 0. The text
// before the ending says whose numbers they are.
func numberOf(r evaluate.Row, ending string) float64 {
	column, _ := tuning.First(slices.Sorted(maps.Keys(r.Cells)), func(c string) bool { return strings.HasSuffix(c, ending) })
	return orNaN(r.Cells[column].Float())
}

func defaults(r evaluate.Row) tuning.Settings {
	out := tuning.Settings{}
	for column, v := range r.Cells {
		if name, ok := strings.CutPrefix(column, "default_knob_"); ok {
			out[name] = v
		}
	}
	return out
}

// fairShare is the default of a table that states speeds relative to it: the least cores
// and memory whose relative speed is 1 in every part. Nil: there is none, and the default
// is the most of everything.
func fairShare(t evaluate.Table) tuning.Settings {
	if !t.Has("relative_speed") {
		return nil
	}
	tables := evaluate.Split(t.Rows, func(r evaluate.Row) [3]string { return [3]string{r.Workload, r.Machine, partOf(r)} })
	share := func(r evaluate.Row) tuning.Settings {
		return r.Knobs.Only(func(name string) bool { return name == tuning.Cores || strings.HasPrefix(name, tuning.Memory) })
	}
	same := evaluate.Split(t.Rows, func(r evaluate.Row) string { return share(r).Key() })
	fair := evaluate.Only(same, func(rows []evaluate.Row) bool {
		return len(rows) >= len(tables) && !slices.ContainsFunc(rows, func(r evaluate.Row) bool { v, _ := r.Float("relative_speed"); return v != 1 })
	})
	if len(fair) == 0 {
		return nil
	}
	return share(slices.MinFunc(fair, func(a, b []evaluate.Row) int {
		x, y, order := share(a[0]), share(b[0]), 0
		for _, name := range slices.Sorted(maps.Keys(x)) {
			order = cmp.Or(order, cmp.Compare(x[name].Float(), y[name].Float()))
		}
		return cmp.Or(order, cmp.Compare(x.Key(), y.Key()))
	})[0])
}

// nearest is the point that has the wanted values, and the most of all else in the order
// of the knobs, among those that may be it: one at least.
func nearest(points []tuning.Settings, wanted tuning.Settings, knobs []string, may []int) int {
	return slices.MinFunc(may, func(a, b int) int {
		order := cmp.Compare(distance(points[a], wanted), distance(points[b], wanted))
		for _, name := range knobs {
			order = cmp.Or(order, cmp.Compare(points[b][name].Float(), points[a][name].Float()))
		}
		return order
	})
}

// distance is how far settings are from wanted ones, where both have a value.
func distance(s, wanted tuning.Settings) float64 {
	d := 0.0
	for name, v := range wanted {
		w, ok := s[name]
		switch {
		case !ok || v == w:
		case v.IsNumber() && w.IsNumber():
			d += math.Abs(v.Float() - w.Float())
		default:
			d++
		}
	}
	return d
}

// run is what one row measured.
type run struct {
	epoch  tuning.Spent // of one epoch; NaN: unknown
	epochs float64      // to the end; +Inf: it failed, or never reached its end
	failed bool
}

func (r run) ends() bool { return !math.IsInf(r.epochs, 1) }

// measured reads one row. Where epochs are not counted the whole run is one epoch. A table
// that has rates alone says how long a number of samples takes. The words say why a row
// cannot be used: it ran, and its time is unknown.
func measured(r evaluate.Row, counted bool, samples float64) (run, string) {
	value := func(column string) float64 {
		v, _ := r.Float(column)
		return orNaN(v)
	}
	one := run{epochs: 1, failed: r.Failed()}
	if counted {
		n, known := r.Float("epochs")
		if known && !(n > 0) {
			return run{}, "its epochs are not above 0"
		}
		if one.epochs = n; !known {
			one.epochs = math.Inf(1)
		}
	}
	one.epoch.Seconds = firstOf(value("epoch_seconds"), value("seconds")/one.epochs, samples/value("samples_per_second"))
	one.epoch.Joules = firstOf(value("joules")/one.epochs, one.epoch.Seconds*value("watts"))
	if counted {
		one.epoch.Joules = firstOf(one.epoch.Seconds*value("watts"), value("joules")/one.epochs)
	}
	if one.failed {
		one.epochs = math.Inf(1)
	}
	if !(one.epoch.Seconds > 0) && one.ends() {
		return run{}, "it has no time: want seconds, epoch_seconds or samples_per_second above 0"
	}
	return one, ""
}

// firstOf returns the first number that is not NaN, else NaN.
func firstOf(all ...float64) float64 {
	v, _ := tuning.First(all, func(v float64) bool { return orNaN(v) > 0 })
	return orNaN(v)
}

// orNaN returns v if it is finite and above 0, else NaN.
func orNaN(v float64) float64 {
	if v > 0 && !math.IsInf(v, 1) {
		return v
	}
	return math.NaN()
}
