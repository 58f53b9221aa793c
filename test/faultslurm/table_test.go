package faultslurm_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// strike is a fault that happened.
type strike struct {
	fault

	round   int
	touched []string // jobs that were in the middle of something
}

// verdict is what became of a job.
type verdict struct {
	job     *job
	once    bool // it ended exactly once, as it had to
	lost    bool
	twice   bool
	epochs  bool
	waited  bool          // sbatch --wait returned something else
	dependa bool          // its dependant did not run once and after it
	again   bool          // it ended between its save and the requeue, and did the rest again
	slurms  bool          // slurmctld forgot what it had acknowledged, and this is what Slurm made of it
	fine    bool          // nothing here is our fault
	took    time.Duration // from when it was told to come to its end until Slurm was through with it
	why     []string
}

// right tells of a job that ended once for Slurm and all who wait.
func (v verdict) right() bool { return v.fine && !v.slurms }

// row is a line of the table.
type row struct {
	rounds                                                      map[int]bool
	strikes                                                     int
	jobs, once, lost, twice, epochs, waited, dep, again, slurms int
	longest                                                     time.Duration
}

func (r *row) add(v verdict) {
	r.jobs++
	r.longest = max(r.longest, v.took)
	for _, c := range []struct {
		is bool
		n  *int
	}{{v.once, &r.once}, {v.lost, &r.lost}, {v.twice, &r.twice}, {v.epochs, &r.epochs}, {v.waited, &r.waited}, {v.dependa, &r.dep}, {v.again, &r.again}, {v.slurms, &r.slurms}} {
		if c.is {
			*c.n++
		}
	}
}

// table is printed at the end: a row a kind, and one of all jobs, touched or not.
func table(strikes []strike, verdicts map[string]verdict) string {
	rows, all := map[string]*row{}, row{rounds: map[int]bool{}, strikes: len(strikes)}
	for _, s := range strikes {
		r := rows[s.kind]
		if r == nil {
			r = &row{rounds: map[int]bool{}}
			rows[s.kind] = r
		}
		r.strikes++
		r.rounds[s.round] = true
		all.rounds[s.round] = true
		for _, id := range s.touched {
			if v, ok := verdicts[id]; ok {
				r.add(v)
			}
		}
	}
	for _, v := range verdicts {
		all.add(v)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-40s %6s %6s %6s %6s %5s %6s %7s %6s %6s %6s %8s %8s\n", "fault", "rounds", "times", "jobs", "once", "lost", "twice", "epochs", "wait", "after", "again", "Slurm's", "longest")
	line := func(name string, r *row) {
		fmt.Fprintf(&b, "%-40s %6d %6d %6d %6d %5d %6d %7d %6d %6d %6d %8d %7.0fs\n", name, len(r.rounds), r.strikes, r.jobs, r.once, r.lost, r.twice, r.epochs, r.waited, r.dep, r.again, r.slurms, r.longest.Seconds())
	}
	for _, kind := range slices.Sorted(maps.Keys(rows)) {
		line(kind, rows[kind])
	}
	line("all faults, every job counted once", &all)
	points := map[string]int{}
	for _, s := range strikes {
		if s.point != "" {
			points[s.point]++
		}
	}
	b.WriteString("\npoints:")
	for _, p := range slices.Sorted(maps.Keys(points)) {
		fmt.Fprintf(&b, " %s %d", p, points[p])
	}
	b.WriteString("\n\njobs: that were in the middle of a move when it struck. once: ended exactly once, as they had to. lost: never ended.\n" +
		"twice: ran beside themselves or again after their end. epochs: missing or repeated. wait: sbatch --wait returned something\n" +
		"else. after: a dependant did not run once and after it. again: for Slurm and all who wait it ended once; it had saved and\n" +
		"came to its end before the requeue reached it, so that the work since the save was done again. Slurm's: not once, since a\n" +
		"killed slurmctld forgot what it had acknowledged and not saved. longest: from when a job was told to come to its end\n" +
		"until Slurm was through with it.\n")
	return b.String()
}

func TestTheTableCountsAJobInTheRowOfEachFaultThatTouchedIt(t *testing.T) {
	t.Parallel()
	verdicts := map[string]verdict{"1": {once: true, took: 9 * time.Second}, "2": {lost: true, took: 5 * time.Second}, "3": {once: true}}
	got := table([]strike{
		{fault: fault{kind: "a"}, round: 1, touched: []string{"1", "2"}}, {fault: fault{kind: "a"}, round: 2, touched: []string{"1"}}, {fault: fault{kind: "b"}, round: 3, touched: []string{"2", "9"}},
	}, verdicts)
	for _, want := range [][]string{{"a", "2", "2", "3", "2", "1", "0", "0", "0", "0", "0", "0", "9s"}, {"b", "1", "1", "1", "0", "1", "0", "0", "0", "0", "0", "0", "5s"}} {
		if !slices.ContainsFunc(strings.Split(got, "\n"), func(l string) bool { return slices.Equal(strings.Fields(l), want) }) {
			t.Errorf("no row %q in\n%s", want, got)
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(got), " "), "every job counted once 3 3 3 2 1 0") {
		t.Errorf("the last row is another:\n%s", got)
	}
}
