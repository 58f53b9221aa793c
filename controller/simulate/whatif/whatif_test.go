package whatif_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/simulate"
	"pitchpipe/controller/simulate/whatif"
	"pitchpipe/test/site"
)

// recorded is a month of a site as its log shows it, and the truth.
func recorded(t *testing.T, seed uint64) (joblog.Log, whatif.Options, func(job, cores int) float64) {
	t.Helper()
	o := site.Options{Nodes: 20, CoresPerNode: 32, Days: 28, Load: 0.6 + 0.1*float64(seed%4), Users: 25}
	jobs := site.Draw(seed, o)
	shape := simulate.Shape{Nodes: o.Nodes, CoresPerNode: o.CoresPerNode}
	var l joblog.Log
	for _, j := range jobs {
		l.Jobs = append(l.Jobs, j.Job)
	}
	in, err := simulate.Prepare(l, shape)
	if err != nil {
		t.Fatal(err)
	}
	easy := slices.IndexFunc(simulate.Specs(), func(s simulate.Spec) bool { return s.Name == "easy" })
	r, err := simulate.Run(t.Context(), in, simulate.Specs()[easy], nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range l.Jobs {
		l.Jobs[i].Start = r.Jobs[i].First
	}
	return l, whatif.Options{Shape: shape}, func(job, cores int) float64 { return jobs[job].Seconds(cores) }
}

func TestTheEstimateIsNearTheTruthOfASite(t *testing.T) {
	if testing.Short() {
		t.Skip("plays the jobs of a site under each policy: make check runs it")
	}
	t.Parallel()
	for seed := range uint64(1) { // more take minutes under the race detector
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			l, o, seconds := recorded(t, seed)
			quiet := func(int, int, string) {}
			said, err := whatif.Study(t.Context(), l, o, quiet)
			if err != nil {
				t.Fatal(err)
			}
			o.Seconds = seconds
			truth, err := whatif.Study(t.Context(), l, o, quiet)
			if err != nil {
				t.Fatal(err)
			}
			base := said.Rows[1]
			for i, row := range said.Rows[2:] {
				is := truth.Rows[i+2]
				saved := func(l evaluate.Line) float64 { return float64(base.Figure("core_hours") - l.Figure("core_hours")) }
				wait, truly := float64(row.Figure("mean_wait")), float64(is.Figure("mean_wait"))
				t.Logf("%-18s saves %7.0f core-hours, in truth %7.0f; mean wait %5.0f s, in truth %5.0f", row.Text("way"), saved(row), saved(is), wait, truly)
				if off := math.Abs(saved(row) - saved(is)); off > 0.1*saved(is) {
					t.Errorf("core-hours of %s: off by %.0f", row.Text("way"), off)
				}
				if off := math.Abs(wait - truly); off > 0.1*truly && off > 0.01*float64(base.Figure("mean_wait")) { // less is chance
					t.Errorf("mean wait of %s: off by %.0f s", row.Text("way"), off)
				}
				for _, key := range []string{"core_hours", "mean_wait"} {
					if x := is.Figure(key); !(x >= row.Figure(key+"_low")-1e-6 && x <= row.Figure(key+"_high")+1e-6) {
						t.Errorf("%s of %s: %v is outside %v to %v", key, row.Text("way"), x, row.Figure(key+"_low"), row.Figure(key+"_high"))
					}
				}
			}
		})
	}
}

func TestWhatStaysHasAnIntervalOfNoLengthAndMemoryThatNoJobNamesIsUnknown(t *testing.T) {
	t.Parallel()
	l := joblog.Log{Jobs: []joblog.Job{
		{User: "ann", Submit: 1, Start: 1, Duration: 100, CPUs: 4}, {User: "bob", Submit: 11, Start: 101, Duration: 100, CPUs: 4}, // ann never waits
	}}
	r, err := whatif.Study(t.Context(), l, whatif.Options{}, func(int, int, string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows[2:] {
		if is, low, high := row.Figure("mean_wait"), row.Figure("mean_wait_low"), row.Figure("mean_wait_high"); is != 45 || low != 45 || high != 45 {
			t.Errorf("%s: %g, from %g to %g", row.Text("way"), is, low, high)
		}
		if hours := row.Figure("gib_hours"); hours.Known() {
			t.Errorf("%s: %g GiB-hours", row.Text("way"), hours)
		}
	}
}

func TestAJobThatRunsTwiceIsSlowedDown(t *testing.T) {
	t.Parallel()
	var l joblog.Log
	for i, peak := range []int64{1, 1, 1, 8} { // GiB
		at := float64(1000 * i)
		l.Jobs = append(l.Jobs, joblog.Job{User: "ann", Name: "fold", Submit: 1 + at, Start: 1 + at, Duration: 100, CPUs: 1, Memory: 16 << 30, MemoryUsed: peak << 30})
	}
	r, err := whatif.Study(t.Context(), l, whatif.Options{}, func(int, int, string) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		want := map[string]evaluate.Figure{"right-size memory": 1.25, "all together": 1.25}[row.Text("way")]
		if is := row.Figure("mean_bounded_slowdown"); is != max(want, 1) {
			t.Errorf("%s: %g", row.Text("way"), is)
		}
	}
}

func TestAJobWhoseTimeoutWasNotAtItsLimitTakesNoLongerOnFewerCores(t *testing.T) {
	t.Parallel()
	const hour = 3600
	for _, c := range []struct {
		name  string
		limit float64
		want  evaluate.Figure
	}{
		{"the reservation ended after an hour of two days", 48 * hour, 3*4 + 7*1},
		{"the limit was reached", hour, 3*4 + 7*1}, // the limit ends it again
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var l joblog.Log
			for i := range 10 {
				at := float64(1 + 3*hour*i)
				j := joblog.Job{User: "ann", Name: "fold", State: "COMPLETED", Submit: at, Start: at, Duration: hour, Limit: c.limit, CPUs: 4, CPUSeconds: hour}
				if i >= 7 {
					j.State = "TIMEOUT"
				}
				l.Jobs = append(l.Jobs, j)
			}
			r, err := whatif.Study(t.Context(), l, whatif.Options{}, func(int, int, string) {})
			if err != nil {
				t.Fatal(err)
			}
			if row := r.Rows[2]; row.Text("way") != "right-size cores" || row.Figure("core_hours") != c.want {
				t.Errorf("%s: %g core-hours, want %g", row.Text("way"), row.Figure("core_hours"), c.want)
			}
		})
	}
}
