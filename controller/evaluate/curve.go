package evaluate

import (
	"cmp"
	"slices"
)

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
