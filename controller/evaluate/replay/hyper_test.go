package replay_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/test/fixtures"
)

// curvesOfTwo are two workloads of 12 runs: the error falls to that of the setting, at best (5)
// 0.01 above the floor, and an epoch costs a second. One run breaks.
func curvesOfTwo(t *testing.T) evaluate.Table {
	t.Helper()
	var b strings.Builder
	b.WriteString("run,workload,machine,knob_x,epoch,seconds,quality\n")
	for _, w := range []string{"a", "b"} {
		for x := range 12 {
			for e := 1; e <= 9; e++ {
				quality := fmt.Sprintf("%.4f", 0.99-0.02*math.Abs(float64(x-5))-0.3/float64(e*e))
				if x == 11 && e >= 4 {
					quality = ""
				}
				fmt.Fprintf(&b, "%s%d,%s,m,%d,%d,%d,%s\n", w, x, w, x+1, e, e, quality)
			}
		}
	}
	return evaluatetest.Table(t, "curves.csv", b.String(), evaluate.Curves)
}

func runHyper(t *testing.T, in replay.HyperInput) evaluate.Report {
	t.Helper()
	r, err := replay.Hyper(t.Context(), in, evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestAHyperSearchIsTheSameForTheSameSeed(t *testing.T) {
	t.Parallel()
	in := replay.HyperInput{Set: evaluate.Set{Curves: []evaluate.Table{curvesOfTwo(t)}}, Seconds: 40, Seeds: 3, Seed: 2}
	report := runHyper(t, in)
	if diff := cmp.Diff(asJSON(t, report), asJSON(t, runHyper(t, in))); diff != "" {
		t.Errorf("run again (-first +second):\n%s", diff)
	}
	for name, text := range map[string]string{"hyper.json": asJSON(t, report), "hyper.txt": report.Text()} {
		fixtures.Golden(t, *update, "testdata/"+name, text)
	}
}

func TestNoSearchPaysMoreSecondsThanItMay(t *testing.T) {
	t.Parallel()
	for _, seconds := range []float64{0.5, 1, 8.5, 30, 1e4} {
		for _, r := range runHyper(t, replay.HyperInput{Set: evaluate.Set{Curves: []evaluate.Table{curvesOfTwo(t)}}, Seconds: seconds, Seeds: 3}).Rows {
			if float64(r.Figure("seconds")) != seconds || float64(r.Figure("seconds_used_mean")) > seconds {
				t.Errorf("%s: %g seconds of %g", r.Text("method"), r.Figure("seconds_used_mean"), seconds)
			}
			if used := r.Figure("seconds_used_mean"); seconds == 8.5 && (used <= 8 || used >= 8.5) { // the budget ends within a run
				t.Errorf("%s: %g seconds of %g", r.Text("method"), r.Figure("seconds_used_mean"), seconds)
			}
			full := !strings.HasPrefix(r.Text("method"), replay.ASHA)
			if seconds == 1e4 && full && r.Figure("regret_mean") != 0 {
				t.Errorf("%s: everything was run and the regret is %g", r.Text("method"), r.Figure("regret_mean"))
			}
			if seconds < 1 && math.Abs(float64(r.Figure("regret_mean"))-(0.43-0.01-0.3/81)) > 1e-4 {
				t.Errorf("%s: nothing could be run and the regret is %g, want that of the worst first epoch", r.Text("method"), r.Figure("regret_mean"))
			}
		}
	}
}

func TestCurvesWithoutSecondsHaveNoRegret(t *testing.T) {
	t.Parallel()
	in := replay.HyperInput{Set: evaluate.Set{Curves: []evaluate.Table{evaluatetest.Table(t, "x.csv", "run,workload,machine,knob_x,epoch,seconds,loss\n1,a,m,1,1,,3\n2,a,m,2,1,,4\n", evaluate.Curves)}}, Seeds: 1}
	for _, r := range runHyper(t, in).Rows {
		if r.Figure("regret_mean").Known() || r.Figure("seconds").Known() {
			t.Errorf("%+v: what was not recorded is a number", r)
		}
	}
}

// Of five runs one has no seconds and one has seconds that fall: the others are searched.
func TestRunsWithoutSecondsAreLeftOutAndListed(t *testing.T) {
	t.Parallel()
	const text = "run,workload,machine,input,knob_x,epoch,seconds,loss\n" +
		"1,a,m,s,1,1,2,9\n1,a,m,s,1,2,4,5\n2,a,m,s,2,1,2,8\n2,a,m,s,2,2,,3\n2,a,m,s,2,3,6,2\n" +
		"3,a,m,s,3,1,,8\n3,a,m,s,3,2,,3\n4,a,m,s,4,1,5,8\n4,a,m,s,4,2,4,3\n5,a,m,s,5,1,,7\n5,a,m,s,5,2,9,4\n"
	r := runHyper(t, replay.HyperInput{Set: evaluate.Set{Curves: []evaluate.Table{evaluatetest.Table(t, "x.csv", text, evaluate.Curves)}}, Seconds: 100, Seeds: 2, Methods: []replay.Method{replay.Random}})
	row := r.Rows[0]
	if row.Text("input") != "s" || row.Figure("regret_mean") != 0 || row.Figure("runs_mean") != 3 || math.Abs(float64(row.Figure("seconds_used_mean"))-(4+6+9+5*0.05)) > 1e-9 {
		t.Errorf("%+v", row)
	}
	want := []evaluate.Line{
		{"data": "x.csv", "workload": "a/s", "machine": "m", "rows": 2, "line": 7, "why": "no seconds"},
		{"data": "x.csv", "workload": "a/s", "machine": "m", "rows": 2, "line": 9, "why": "4 seconds after 5: want seconds since the start of a run, which never fall"},
	}
	if diff := cmp.Diff(want, r.Summary.Lines("left_out")); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
}

// The same curves, recorded at each epoch as shares and at each third as percentages, are
// worth the same to who runs everything to its end.
func TestAnOutcomeAtEachThirdEpochIsNotABrokenRun(t *testing.T) {
	t.Parallel()
	recordedAt := func(every int, whole float64) evaluate.Table {
		var b strings.Builder
		b.WriteString("run,workload,machine,knob_x,epoch,seconds,quality\n")
		for x := range 8 {
			for e := 1; e <= 10; e++ {
				quality := ""
				if e%every == 0 {
					quality = fmt.Sprintf("%.6f", whole*(0.9-0.05*math.Abs(float64(x-3))-0.2/float64(e-e%3+1)))
				}
				fmt.Fprintf(&b, "%d,a,m,%d,%d,%d,%s\n", x, x+1, e, e, quality)
			}
		}
		return evaluatetest.Table(t, "x.csv", b.String(), evaluate.Curves)
	}
	in := replay.HyperInput{Seconds: 25, Seeds: 8, Seed: 3, Methods: []replay.Method{replay.Random, replay.ASHA}}
	in.Curves = []evaluate.Table{recordedAt(1, 1)}
	each := runHyper(t, in)
	in.Curves = []evaluate.Table{recordedAt(3, 100)}
	third := runHyper(t, in)
	if a, b := each.Rows[0].Figure("regret_mean"), third.Rows[0].Figure("regret_mean"); math.Abs(float64(a-b)) > 1e-6 || a == 0 || third.Rows[0].Figure("runs_mean") != each.Rows[0].Figure("runs_mean") {
		t.Errorf("random's regret is %g of each epoch, %g of each third", a, b)
	}
	if asha := third.Rows[1]; asha.Figure("regret_mean") > .2 || asha.Figure("runs_mean") < 3 {
		t.Errorf("ASHA: regret %g over %g runs", asha.Figure("regret_mean"), asha.Figure("runs_mean"))
	}
}

func TestWorkersTrainSideBySide(t *testing.T) {
	t.Parallel()
	in := replay.HyperInput{Set: evaluate.Set{Curves: []evaluate.Table{curvesOfTwo(t)}}, Seconds: 19, Seeds: 2, Methods: []replay.Method{replay.Random, replay.ASHA}}
	for _, workers := range []int{1, 3} {
		in.Workers = workers
		r := runHyper(t, in)
		row := r.Rows[0] // a run takes 9 seconds, or 3 where it breaks
		if runs := float64(row.Figure("runs_mean")); row.Figure("workers") != evaluate.Figure(workers) || runs < float64(2*workers) || runs > float64(5*workers) {
			t.Errorf("%d workers: %g runs in 19 seconds", workers, runs)
		}
		if asha := r.Summary.Lines("means")[1]; !(asha.Figure("over_random_low") <= asha.Figure("over_random") && asha.Figure("over_random") <= asha.Figure("over_random_high")) {
			t.Errorf("%d workers: %+v: want a share within its interval", workers, asha)
		}
	}
}

// TestTimeToThreshold plays one run after the other: the third best of three has no part in it.
func TestTimeToThreshold(t *testing.T) {
	t.Parallel()
	const text = "run,workload,machine,knob_x,epoch,seconds,loss\n1,a,m,1,1,2,9\n1,a,m,1,2,4,5\n2,a,m,2,1,2,8\n2,a,m,2,2,4,6\n"
	in := replay.HyperInput{Set: evaluate.Set{Curves: []evaluate.Table{evaluatetest.Table(t, "x.csv", text, evaluate.Curves)}}, Seeds: 20, Methods: []replay.Method{replay.Random}}
	for _, tc := range []struct {
		name           string
		seconds        float64
		reached, least float64 // least is the mean if the better run always comes first
	}{
		{"who runs everything reaches it", 100, 1, 4},
		{"who has no time does not, and counts all of it", 3, 0, 3},
	} {
		in.Seconds = tc.seconds
		row := runHyper(t, in).Rows[0]
		if row.Figure("threshold") != 5 || float64(row.Figure("reached_share")) != tc.reached || float64(row.Figure("seconds_to_threshold_mean")) < tc.least {
			t.Errorf("%s: %+v", tc.name, row)
		}
	}
}

// TestSearchesKeepTheirShareOfTheRegretOfRandomRuns states the aims over recorded curves: what is left of
// the regret of random runs after the seconds of ten full runs. That of ASHA has to hold with any one
// workload left out. `make bench-mind` has that of a search with a history.
func TestSearchesKeepTheirShareOfTheRegretOfRandomRuns(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("plays hundreds of searches: make check runs it")
	}
	curves := evaluatetest.Recorded(t, evaluate.Curves, "lcbench/curves.csv.gz")
	for _, tc := range []struct {
		method replay.Method
		seeds  int
		most   evaluate.Figure
		each   bool
	}{
		{replay.ASHA, 8, 0.45, true},
		{replay.ASHAStopping, 20, 0.45, false},
		{replay.ASHAModel, 1, 0.28, false},
	} {
		r := runHyper(t, replay.HyperInput{Set: evaluate.Set{Curves: curves}, Seeds: tc.seeds, Seed: 1, Methods: []replay.Method{replay.Random, tc.method}})
		left := []string{""}
		for _, row := range r.Rows {
			if tc.each && !slices.Contains(left, row.Text("workload")) {
				left = append(left, row.Text("workload"))
			}
		}
		for _, out := range left {
			sums := map[replay.Method]evaluate.Figure{}
			for _, row := range r.Rows {
				if row.Text("workload") != out {
					sums[row.Text("method")] += row.Figure("regret_mean")
				}
			}
			share := sums[tc.method] / sums[replay.Random]
			t.Logf("%s without %q: %.2f of random", tc.method, out, share)
			if share > tc.most {
				t.Errorf("%s without %q: %.2f of random's regret, want %g at most", tc.method, out, share, float64(tc.most))
			}
		}
	}
}
