package evaluate

import (
	"cmp"
	"slices"

	"pitchpipe/controller/tuning"
)

// Group are the rows of one workload on one machine, in the order of the file.
type Group struct {
	File              string // of the table
	Workload, Machine string
	Input             string // of the workload, where Jobs made the group; empty: the table does not tell
	Rows              []Row
}

// Groups splits a table by workload and machine, in the order of the first row of each.
func (t Table) Groups() []Group { return t.groups(func(Row) string { return "" }) }

// Jobs are Groups with one input each: what two inputs took under one setting are not
// repeats of each other.
func (t Table) Jobs() []Group { return t.groups(Row.Input) }

func (t Table) groups(input func(Row) string) []Group {
	same := Split(t.Rows, func(r Row) [3]string { return [3]string{r.Workload, r.Machine, input(r)} })
	return tuning.Each(same, func(rows []Row) Group {
		return Group{File: t.File, Workload: rows[0].Workload, Machine: rows[0].Machine, Input: input(rows[0]), Rows: rows}
	})
}

// Name is what the group's job is called: its workload, and the input where there is one.
func (g Group) Name() string {
	if g.Input == "" {
		return g.Workload
	}
	return g.Workload + "/" + g.Input
}

// Line has what names the group.
func (g Group) Line() Line {
	return Line{"workload": g.Workload, "machine": g.Machine, "input": g.Input}
}

// Runs splits rows by run, in the order of the first row of each. A name means one run of a
// workload, machine, scenario and input; others may have runs of the same name. A name with
// other settings that does not go on in time means one run under each of them.
func Runs(rows []Row) [][]Row {
	var out [][]Row
	for _, run := range Split(rows, func(r Row) [5]string {
		return [5]string{r.Workload, r.Machine, r.Text("scenario"), r.Input(), r.Run}
	}) {
		if restarts(run) {
			out = append(out, Split(run, Setting)...)
		} else {
			out = append(out, run)
		}
	}
	return out
}

// Split sorts things by a key, in the order of the first of each.
func Split[T any, K comparable](list []T, by func(T) K) [][]T {
	var out [][]T
	at := map[K]int{}
	for _, one := range list {
		i, ok := at[by(one)]
		if !ok {
			i, at[by(one)] = len(out), len(out)
			out = append(out, nil)
		}
		out[i] = append(out[i], one)
	}
	return out
}

// Setting names the settings of a row.
func Setting(r Row) string { return r.Knobs.Key() }

// restarts reports whether the settings change anywhere without the time going on.
func restarts(rows []Row) bool {
	for i := 1; i < len(rows); i++ {
		before, knew := rows[i-1].time()
		now, known := rows[i].time()
		if knew && known && now <= before && !rows[i].Knobs.Equal(rows[i-1].Knobs) {
			return true
		}
	}
	return false
}

// time is the epoch, or the second of a sample.
func (r Row) time() (float64, bool) {
	if v, ok := r.Float("epoch"); ok {
		return v, true
	}
	return r.Float("t_seconds")
}

// Whole is the quality that is perfect: 1 where qualities are shares, 100 where they are
// percentages, as one of them above 1 shows. False: one is above 100, so that
// what is perfect is unknown.
func Whole(rows []Row) (float64, bool) {
	whole := 1.0
	for _, r := range rows {
		switch v, _ := r.Float("quality"); {
		case v > 100:
			return 0, false
		case v > 1:
			whole = 100
		}
	}
	return whole, true
}

// InOrder are the rows of a run in the order of its epochs.
func InOrder(run []Row) []Row {
	run = slices.Clone(run)
	slices.SortStableFunc(run, func(a, b Row) int {
		x, _ := a.Float("epoch")
		y, _ := b.Float("epoch")
		return cmp.Compare(x, y)
	})
	return run
}

// Cadence is how many epochs the runs of a workload usually go without a value of a column
// before they have one: 0 where they tell it at each epoch, 4 where at each fifth. The
// runs are in order.
func Cadence(runs [][]Row, column string) int {
	var gaps []int
	for _, run := range runs {
		if longest, last := gap(run, column); last >= 0 {
			gaps = append(gaps, longest)
		}
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[(len(gaps)-1)/2]
}

// Last is the index of the last row of a run, in order, that has a value of a column; below
// 0: none has. A run that went on beyond it for longer than it used to go without, and
// than is usual, broke there.
func Last(run []Row, column string, cadence int) (last int, broke bool) {
	longest, last := gap(run, column)
	return last, last < 0 || len(run)-1-last > max(longest, cadence)
}

// gap is the most rows one after the other without a value before one that has it, and the
// last that has one.
func gap(run []Row, column string) (longest, last int) {
	last = -1
	for i, r := range run {
		if _, ok := r.Float(column); ok {
			longest, last = max(longest, i-last-1), i
		}
	}
	return longest, last
}
