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

// sheet prints rows.
type sheet struct {
	strings.Builder

	columns []string
	longest string // the name of the last column
}

func newSheet(columns []string, longest string) *sheet {
	s := &sheet{columns: columns, longest: longest}
	fmt.Fprintf(&s.Builder, "%-46s %6s %6s %6s", "fault", "rounds", "times", "jobs")
	for _, c := range columns {
		fmt.Fprintf(&s.Builder, " %*s", width(c), c)
	}
	fmt.Fprintf(&s.Builder, " %*s\n", width(longest), longest)
	return s
}

func (s *sheet) line(name string, r *row) {
	fmt.Fprintf(&s.Builder, "%-46s %6d %6d %6d", name, len(r.rounds), r.strikes, r.jobs)
	for i, c := range s.columns {
		fmt.Fprintf(&s.Builder, " %*d", width(c), r.counts[i])
	}
	fmt.Fprintf(&s.Builder, " %*.1fs\n", width(s.longest)-1, r.longest.Seconds())
}

// Table has a row for each kind, one of all jobs, and the points that were met.
func Table(of Side, columns []string, longest string) string {
	s := newSheet(columns, longest)
	kinds, all := of.rows(len(columns))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		s.line(kind, kinds[kind])
	}
	s.line("all faults, every job counted once", all)
	points := map[string]int{}
	for _, st := range of.Strikes {
		if st.Point != "" {
			points[st.Point]++
		}
	}
	s.WriteString("\npoints:")
	for _, p := range slices.Sorted(maps.Keys(points)) {
		fmt.Fprintf(&s.Builder, " %s %d", p, points[p])
	}
	s.WriteString("\n")
	return s.String()
}

// Beside has two rows for each kind that the second side met: what the first side made of
// it, and the second.
func Beside(first, second Side, names [2]string, columns []string, longest string) string {
	s := newSheet(columns, longest)
	a, allA := first.rows(len(columns))
	b, allB := second.rows(len(columns))
	for _, kind := range slices.Sorted(maps.Keys(b)) {
		if r := a[kind]; r != nil {
			s.line(kind+", "+names[0], r)
		}
		s.line(kind+", "+names[1], b[kind])
	}
	s.line("every job counted once, "+names[0], allA)
	s.line("every job counted once, "+names[1], allB)
	return s.String()
}

func width(column string) int { return max(6, len(column)) }
