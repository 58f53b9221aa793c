package tuner

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// table is one workload on one machine with one input, everything that was measured of it.
type table struct {
	workload, machine, input, part string
	space                          recur.Space
	cells                          []cell  // by point
	maxEpochs                      float64 // 0: unknown
	reference                      *reference
	absent                         int  // settings that lack a number that the goal needs
	replaced                       bool // the default asked for does not reach its end: the nearest that does
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

// tablesOf splits a file into tables, in the order of their first rows, and tells what of it
// was left out.
func tablesOf(t records.Table, in Input) ([]table, []evaluate.LeftOut, error) {
	beside, err := readBeside(t.File)
	if err != nil {
		return nil, nil, err
	}
	own := in.Default
	if own == nil {
		own = FairShare(t)
	}
	var out []table
	var left []evaluate.LeftOut
	for _, g := range t.Jobs() {
		for _, part := range parts(g.Rows) {
			made, lost := makeTable(t, g, part, own, beside, in)
			left = append(left, lost...)
			if len(made.cells) > 0 {
				out = append(out, made)
			}
		}
	}
	return out, left, nil
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

// makeTable gathers the rows of one part by setting. Settings that lack a number that the
// goal needs are absent. Where nothing is left there are no cells.
func makeTable(t records.Table, g, part records.Group, own tuning.Settings, beside beside, in Input) (table, []evaluate.LeftOut) {
	made := table{workload: g.Workload, machine: g.Machine, input: g.Input, part: part.Workload}
	key := pair{g.Workload, g.Machine}
	made.maxEpochs = beside.maxEpochs[key]
	if r, ok := beside.references[key]; ok {
		made.reference = &r
	}
	if d, ok := beside.defaults[key]; ok && in.Default == nil {
		own = d
	}
	var left []evaluate.LeftOut
	leave := func(line int, rows int, why string) {
		left = evaluate.Leave(left, evaluate.LeftOut{Data: t.File, Workload: g.Name(), Machine: g.Machine, Rows: rows, Line: line, Why: why})
	}
	counted := t.Has("epochs")
	points, cells, first := gather(part.Rows, counted, leave)
	if in.Goal.Least() {
		if points, cells, first = cored(points, cells, first, leave); len(points) == 0 {
			leave(0, 0, "no knob of cores or threads, which the objective counts")
			return made, left
		}
	}
	all := recur.Space{Knobs: knobs(t, points, counted), Points: points}
	if len(points) == 0 {
		return made, left
	}
	wanted := ownPoint(all, own, func(int) bool { return true })
	at := ownPoint(all, own, func(p int) bool { return cells[p].reaches() && lacks(in.Goal, cells[p].epoch) == "" })
	if at < 0 {
		leave(0, 0, "no setting reaches its end and tells what the objective needs")
		return made, left
	}
	made.replaced = at != wanted
	for i, p := range points {
		if lacks(in.Goal, cells[i].epoch) != "" {
			if cells[i].reaches() {
				made.absent++
				leave(first[i], len(cells[i].repeats), "no "+lacks(in.Goal, cells[i].epoch)+", which the objective needs")
				continue
			}
			cells[i].epoch, cells[i].runs = tuning.Spent{Seconds: math.NaN(), Joules: math.NaN()}, nil // it costs what the owner's does
		}
		if i == at {
			made.space.Own = len(made.cells)
		}
		made.space.Points, made.cells = append(made.space.Points, p), append(made.cells, cells[i])
	}
	made.space.Knobs = knobs(t, made.space.Points, counted)
	return made, left
}

// gather sorts rows by their settings. first are the lines on which these begin.
func gather(rows []records.Row, counted bool, leave func(line, rows int, why string)) (points []tuning.Settings, cells []cell, first []int) {
	at := map[string]int{}
	for _, r := range rows {
		one, why := repeatOf(r, counted)
		if why != "" {
			leave(r.Line, 1, why)
			continue
		}
		name := r.Knobs.Key()
		i, ok := at[name]
		if !ok {
			i, at[name] = len(cells), len(cells)
			cells, points, first = append(cells, cell{}), append(points, withCores(r.Knobs)), append(first, r.Line)
		}
		cells[i].join(one)
	}
	for i := range cells {
		cells[i].close(counted)
	}
	return points, cells, first
}

// withCores lets threads count as cores where no knob is called that.
func withCores(s tuning.Settings) tuning.Settings {
	if v, ok := s[tuning.Threads]; ok && v.IsNumber() && !s[tuning.Cores].IsNumber() {
		return s.With(tuning.Cores, v)
	}
	return s
}

// cored are the points that say how many cores they have.
func cored(points []tuning.Settings, cells []cell, first []int, leave func(line, rows int, why string)) (p []tuning.Settings, c []cell, f []int) {
	for i := range points {
		if !(points[i][tuning.Cores].Float() > 0) {
			leave(first[i], len(cells[i].repeats), "its setting names no cores or threads, which the objective counts")
			continue
		}
		p, c, f = append(p, points[i]), append(c, cells[i]), append(f, first[i])
	}
	return p, c, f
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

// ownPoint is the point that has the given values, and the most of everything else, of
// those that may be it; below 0: none may.
func ownPoint(s recur.Space, own tuning.Settings, may func(point int) bool) int {
	best := -1
	for i, p := range s.Points {
		if !may(i) {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
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
