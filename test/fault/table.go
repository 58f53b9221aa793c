package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Strike is a fault that happened.
type Strike struct {
	Fault

	Round   int
	Touched []string // jobs that were in the middle of something
}

// Verdict is what became of a job: whether it counts in each of the table's columns, and
// a time of which the table shows the longest.
type Verdict struct {
	Counts []bool // as long as the columns
	Took   time.Duration
}

// row is a line of the table.
type row struct {
	rounds  map[int]bool
	strikes int
	jobs    int
	counts  []int
	longest time.Duration
}

func (r *row) add(v Verdict) {
	r.jobs++
	r.longest = max(r.longest, v.Took)
	for i, is := range v.Counts {
		if is {
			r.counts[i]++
		}
	}
}

// Table is printed at the end: a row a kind, and one of all jobs, touched or not. A
// strike's touched are keys of the verdicts. The last column is named longest.
func Table(strikes []Strike, verdicts map[string]Verdict, columns []string, longest string) string {
	fresh := func() *row { return &row{rounds: map[int]bool{}, counts: make([]int, len(columns))} }
	rows, all := map[string]*row{}, fresh()
	all.strikes = len(strikes)
	for _, s := range strikes {
		r := rows[s.Kind]
		if r == nil {
			r = fresh()
			rows[s.Kind] = r
		}
		r.strikes++
		r.rounds[s.Round] = true
		all.rounds[s.Round] = true
		for _, id := range s.Touched {
			if v, ok := verdicts[id]; ok {
				r.add(v)
			}
		}
	}
	for _, v := range verdicts {
		all.add(v)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-40s %6s %6s %6s", "fault", "rounds", "times", "jobs")
	for _, c := range columns {
		fmt.Fprintf(&b, " %*s", width(c), c)
	}
	fmt.Fprintf(&b, " %*s\n", width(longest), longest)
	line := func(name string, r *row) {
		fmt.Fprintf(&b, "%-40s %6d %6d %6d", name, len(r.rounds), r.strikes, r.jobs)
		for i, c := range columns {
			fmt.Fprintf(&b, " %*d", width(c), r.counts[i])
		}
		fmt.Fprintf(&b, " %*.1fs\n", width(longest)-1, r.longest.Seconds())
	}
	for _, kind := range slices.Sorted(maps.Keys(rows)) {
		line(kind, rows[kind])
	}
	line("all faults, every job counted once", all)
	points := map[string]int{}
	for _, s := range strikes {
		if s.Point != "" {
			points[s.Point]++
		}
	}
	b.WriteString("\npoints:")
	for _, p := range slices.Sorted(maps.Keys(points)) {
		fmt.Fprintf(&b, " %s %d", p, points[p])
	}
	b.WriteString("\n")
	return b.String()
}

func width(column string) int { return max(6, len(column)) }
