package tuner

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// table is one workload on one machine, everything that was measured of it.
type table struct {
	workload, machine, part string
	space                   recur.Space
	cells                   []cell  // by point
	maxEpochs               float64 // 0: unknown
	reference               *reference
}

// cell is one point: its repeats, in the order in which they stand.
type cell struct {
	epoch   recur.Cost // of one epoch, or of the whole run where there are no epochs
	repeats []float64  // epochs to the end; +Inf: never reached
	failed  bool       // did not run at all
	watts   float64
}

// parted are the knobs that split a table into several: a job has them, nobody searches
// them.
func parted() []string { return []string{"gpus", "core_type", "schedule"} }

// isSystem tells whether a knob changes what an epoch costs and not how many there are.
// Recorded names carry their unit.
func isSystem(name string) bool {
	for _, unit := range []string{"_watts", "_gib", "_mhz"} {
		name = strings.TrimSuffix(name, unit)
	}
	return tuning.IsSystem(name) || name == "frequency"
}

// tables splits a file into tables, in the order of their first rows.
func tables(t records.Table, in Input) ([]table, error) {
	beside, err := readBeside(t.File)
	if err != nil {
		return nil, err
	}
	own := in.Default
	if own == nil {
		own = FairShare(t)
	}
	var out []table
	for _, g := range t.Groups() {
		for _, part := range parts(g.Rows) {
			made, err := makeTable(t, g, part, own, beside, in)
			if err != nil {
				return nil, err
			}
			out = append(out, made)
		}
	}
	return out, nil
}

// parts splits rows by the knobs that are not searched.
func parts(rows []records.Row) []records.Group {
	var out []records.Group
	for _, r := range rows {
		key := r.Knobs.Only(func(name string) bool { return slices.Contains(parted(), name) }).Key()
		i := slices.IndexFunc(out, func(g records.Group) bool { return g.Workload == key })
		if i < 0 {
			i = len(out)
			out = append(out, records.Group{Workload: key})
		}
		out[i].Rows = append(out[i].Rows, r)
	}
	return out
}

func makeTable(t records.Table, g, part records.Group, own tuning.Settings, beside beside, in Input) (table, error) {
	made := table{workload: g.Workload, machine: g.Machine, part: part.Workload}
	key := pair{g.Workload, g.Machine}
	made.maxEpochs = beside.maxEpochs[key]
	if r, ok := beside.references[key]; ok {
		made.reference = &r
	}
	if d, ok := beside.defaults[key]; ok && in.Default == nil {
		own = d
	}
	counted := t.Has("epochs")
	at := map[string]int{}
	for _, r := range part.Rows {
		c, err := cellOf(t, r, counted)
		if err != nil {
			return table{}, err
		}
		name := r.Knobs.Key()
		i, ok := at[name]
		if !ok {
			i, at[name] = len(made.cells), len(made.cells)
			made.cells = append(made.cells, cell{})
			made.space.Points = append(made.space.Points, r.Knobs)
		}
		made.cells[i].join(c)
	}
	made.space.Knobs = knobs(t, made.space.Points, counted)
	made.space.Own = ownPoint(made.space, own)
	return made, nil
}

// cellOf reads one row. Without a column of epochs a run counts as one.
func cellOf(t records.Table, r records.Row, counted bool) (cell, error) {
	value := func(column string) float64 {
		if v, ok := r.Float(column); ok {
			return v
		}
		return math.NaN()
	}
	c := cell{epoch: recur.Cost{Seconds: value("seconds"), Joules: value("joules")}, watts: value("watts")}
	failed, _ := r.Float("failed")
	speed, ok := r.Float("relative_speed")
	c.failed = failed > 0 || ok && speed <= records.Placeholder
	n := 1.0
	if counted {
		if n = value("epochs"); math.IsNaN(n) {
			n = math.Inf(1)
		}
		c.epoch.Seconds = value("epoch_seconds")
		if math.IsNaN(c.epoch.Seconds) {
			c.epoch.Seconds = value("seconds") / n
		}
		c.epoch.Joules = c.epoch.Seconds * c.watts
		if math.IsNaN(c.epoch.Joules) {
			c.epoch.Joules = value("joules") / n
		}
	}
	if v, ok := r.Float("samples_per_second"); ok && math.IsNaN(c.epoch.Seconds) && v > 0 {
		c.epoch.Seconds = 1 / v // of one sample
	}
	if !(c.epoch.Seconds > 0) && !c.failed && !math.IsInf(n, 1) {
		return cell{}, fmt.Errorf("%w: %s:%d:1: it tells no time: want seconds, epoch_seconds or samples_per_second above 0", records.ErrInvalid, t.File, r.Line)
	}
	c.repeats = []float64{n}
	return c, nil
}

// join adds a repeat; the cost of an epoch is the mean over repeats.
func (c *cell) join(o cell) {
	n := float64(len(c.repeats))
	if n == 0 || math.IsNaN(c.epoch.Seconds) {
		c.epoch = o.epoch
	} else if o.epoch.Seconds > 0 {
		c.epoch = c.epoch.Times(n).Plus(o.epoch).Times(1 / (n + 1))
	}
	c.repeats = append(c.repeats, o.repeats...)
	c.failed = c.failed || o.failed
}

// knobs are those whose values differ, without those that another one decides.
func knobs(t records.Table, points []tuning.Settings, counted bool) []recur.Knob {
	var out []recur.Knob
	for _, name := range t.Knobs() {
		values := map[tuning.Value]bool{}
		for _, p := range points {
			values[p[name]] = true
		}
		if len(values) > 1 && !slices.ContainsFunc(out, func(k recur.Knob) bool { return decides(points, k.Name, name) }) {
			out = append(out, recur.Knob{Name: name, System: !counted || isSystem(name)})
		}
	}
	slices.SortStableFunc(out, recur.CoresFirst)
	return out
}

// decides tells whether each value of one knob goes with one value of another.
func decides(points []tuning.Settings, one, other string) bool {
	with := map[tuning.Value]tuning.Value{}
	for _, p := range points {
		if v, ok := with[p[one]]; ok && v != p[other] {
			return false
		}
		with[p[one]] = p[other]
	}
	return true
}

// ownPoint is the point that has the given values, and the most of everything else.
func ownPoint(s recur.Space, own tuning.Settings) int {
	best := 0
	for i, p := range s.Points {
		q := s.Points[best]
		more := 0
		for _, k := range s.Knobs {
			more = cmp.Or(more, cmp.Compare(p[k.Name].Float(), q[k.Name].Float()))
		}
		if cmp.Or(cmp.Compare(evaluate.Distance(q, own), evaluate.Distance(p, own)), more) > 0 {
			best = i
		}
	}
	return best
}

// FairShare is the default of a file that tells speeds relative to it: the least setting
// whose relative speed is 1 in every table. Nil: there is none, and the default is the
// most of everything.
func FairShare(t records.Table) tuning.Settings {
	if !t.Has("relative_speed") {
		return nil
	}
	ones, seen := map[string]int{}, map[string]int{}
	at := map[string]tuning.Settings{}
	for _, r := range t.Rows {
		s := r.Knobs.Only(func(name string) bool { return name == tuning.Cores || strings.HasPrefix(name, tuning.Memory) })
		key := s.Key()
		at[key] = s
		seen[key]++
		if v, ok := r.Float("relative_speed"); ok && v == 1 {
			ones[key]++
		}
	}
	tables := 0
	for _, g := range t.Groups() {
		tables += len(parts(g.Rows))
	}
	var best tuning.Settings
	for _, key := range slices.Sorted(maps.Keys(ones)) {
		if ones[key] != seen[key] || seen[key] < tables {
			continue
		}
		if best == nil || less(at[key], best) {
			best = at[key]
		}
	}
	return best
}

func less(a, b tuning.Settings) bool {
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if c := cmp.Compare(a[name].Float(), b[name].Float()); c != 0 {
			return c < 0
		}
	}
	return false
}
