package fault

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Strike is a fault that happened.
type Strike struct {
	Fault

	Round   int
	Touched []string // jobs that were in the middle of something
}

// Verdict is the outcome of a job: whether it counts in each of the table's columns, and a
// time; the table shows the longest.
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

// Side is one system whose rows the table shows.
type Side struct {
	Strikes  []Strike
	Verdicts map[string]Verdict
}

// rows are those of each kind, and that of all jobs, touched or not. A strike's touched are
// keys of the verdicts.
func (s Side) rows(columns int) (kinds map[string]*row, all *row) {
	fresh := func() *row { return &row{rounds: map[int]bool{}, counts: make([]int, columns)} }
	kinds, all = map[string]*row{}, fresh()
	all.strikes = len(s.Strikes)
	for _, st := range s.Strikes {
		r := kinds[st.Kind]
		if r == nil {
			r = fresh()
			kinds[st.Kind] = r
		}
		r.strikes++
		r.rounds[st.Round] = true
		all.rounds[st.Round] = true
		for _, id := range st.Touched {
			if v, ok := s.Verdicts[id]; ok {
				r.add(v)
			}
		}
	}
	for _, v := range s.Verdicts {
		all.add(v)
	}
	return kinds, all
}

// named is a row with its name.
type named struct {
	name string
	*row
}

// sheet prints rows; longest is the name of the last column.
func sheet(columns []string, longest string, rows []named) string {
	var b strings.Builder // to which no writing fails
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "fault\trounds\ttimes\tjobs\t%s\t%s\n", strings.Join(columns, "\t"), longest)
	for _, r := range rows {
		_, _ = fmt.Fprintf(w, "%s\t%d\t%d\t%d", r.name, len(r.rounds), r.strikes, r.jobs)
		for _, n := range r.counts {
			_, _ = fmt.Fprintf(w, "\t%d", n)
		}
		_, _ = fmt.Fprintf(w, "\t%.1fs\n", r.longest.Seconds())
	}
	_ = w.Flush()
	return b.String()
}

// Table has a row for each kind, one of all jobs, and the points that were met.
func Table(of Side, columns []string, longest string) string {
	kinds, all := of.rows(len(columns))
	var rows []named
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		rows = append(rows, named{kind, kinds[kind]})
	}
	points := map[string]int{}
	for _, st := range of.Strikes {
		if st.Point != "" {
			points[st.Point]++
		}
	}
	met := []string{"\npoints:"}
	for _, p := range slices.Sorted(maps.Keys(points)) {
		met = append(met, fmt.Sprint(p, " ", points[p]))
	}
	return sheet(columns, longest, append(rows, named{"all faults, every job counted once", all})) + strings.Join(met, " ") + "\n"
}

// Beside has two rows for each kind that the second side met: what the first side made of
// it, and the second.
func Beside(first, second Side, names [2]string, columns []string, longest string) string {
	a, allA := first.rows(len(columns))
	b, allB := second.rows(len(columns))
	var rows []named
	for _, kind := range slices.Sorted(maps.Keys(b)) {
		if r := a[kind]; r != nil {
			rows = append(rows, named{kind + ", " + names[0], r})
		}
		rows = append(rows, named{kind + ", " + names[1], b[kind]})
	}
	return sheet(columns, longest, append(rows, named{"every job counted once, " + names[0], allA}, named{"every job counted once, " + names[1], allB}))
}
