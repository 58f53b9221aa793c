package models_test

import (
	stdcmp "cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/models"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/fixtures"
)

// full has the defaults for what is zero.
func full(in models.VerifyInput) models.VerifyInput {
	d := models.DefaultVerify()
	in.Seeds, in.Level, in.Untuned = stdcmp.Or(in.Seeds, d.Seeds), stdcmp.Or(in.Level, d.Level), stdcmp.Or(in.Untuned, d.Untuned)
	in.Epochs, in.Pairs = stdcmp.Or(in.Epochs, d.Epochs), stdcmp.Or(in.Pairs, d.Pairs)
	return in
}

func runVerify(t *testing.T, in models.VerifyInput) evaluate.Report {
	t.Helper()
	r, err := models.Verify(t.Context(), full(in), evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// trials are repeats of two workloads under three settings, which differ by what spread
// gives for each.
func trials(t *testing.T, spread func(nth int) float64) evaluate.Table {
	t.Helper()
	var b strings.Builder
	b.WriteString("workload,machine,knob_cores,seconds,joules,failed\n")
	for _, w := range []string{"a", "b"} {
		for cores := 1; cores <= 3; cores++ {
			for nth := range 6 {
				fmt.Fprintf(&b, "%s,m,%d,%g,%g,0\n", w, cores, spread(nth)*12/float64(cores), spread(nth)*100)
			}
			fmt.Fprintf(&b, "%s,m,%d,0.001,1,1\n", w, cores) // it failed at once
		}
	}
	return evaluatetest.Table(t, "d/trials.csv", b.String(), evaluate.Trials)
}

func rowsOf(r evaluate.Report, comparison string, null string) []evaluate.Line {
	return slices.DeleteFunc(slices.Clone(r.Rows), func(row evaluate.Line) bool {
		return row.Text("comparison") != comparison || row.Text("null") != null
	})
}

func TestTheTextOfASmallVerdictReport(t *testing.T) {
	t.Parallel()
	in := models.VerifyInput{
		Set: evaluate.Set{Trials: []evaluate.Table{trials(t, func(nth int) float64 { return 1 + 0.01*float64(nth) })}}, Seeds: 12, Seed: 1, Epochs: 12, Pairs: 12,
	}
	r := runVerify(t, in)
	fixtures.Golden(t, *update, "testdata/verify.txt", r.Text())
	if diff := cmp.Diff(asJSON(t, r), asJSON(t, runVerify(t, in))); diff != "" {
		t.Errorf("the same seed gives another report:\n%s", diff)
	}
}

// Nine pairs of repeats that are all alike: without an effect nothing is claimed, and a
// fifth is found with the eighth.
func TestRepeatsThatAreAlikeShowEveryEffectAndNoOther(t *testing.T) {
	t.Parallel()
	r := runVerify(t, models.VerifyInput{Set: evaluate.Set{Trials: []evaluate.Table{trials(t, func(int) float64 { return 1 })}}, Seeds: 4, Epochs: 1, Pairs: 10})
	rows := rowsOf(r, models.Pairs, "repeats of one setting")
	if len(rows) != 10 { // five effects by time and by energy
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		if row.Figure("false_verdicts") != 0 || row.Figure("coverage") != 1 || row.Figure("looks_mean") < 9 || row.Figure("workloads") != 3 {
			t.Errorf("%+v", row)
		}
		if row.Figure("effect") == 0.2 && (row.Figure("power") != 1 || row.Figure("to_verdict_median") != 8) {
			t.Errorf("a fifth is found in %g after %g pairs, want all after 8", row.Figure("power"), row.Figure("to_verdict_median"))
		}
	}
}

// What gets longer as the job goes on is taken for an effect of the setting: the
// evaluation must show it, and say what it is.
func TestADriftWithinAJobIsAFalseVerdict(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("run,workload,machine,epoch,seconds\n")
	at := 0.0
	for i, seconds := range []float64{12, 10, 10, 10, 15, 15, 15, 15, 15, 15, 15, 15} {
		at += seconds
		fmt.Fprintf(&b, "r,w,m,%d,%g\n", i+1, at)
	}
	r := runVerify(t, models.VerifyInput{
		Set: evaluate.Set{Curves: []evaluate.Table{evaluatetest.Table(t, "d/curves.csv", b.String(), evaluate.Curves)}}, Seeds: 24, Epochs: 8, Pairs: 1,
	})
	row := rowsOf(r, models.Job, "epochs of one run in their order")[0]
	if row.Figure("false_verdicts") < 0.2 || row.Figure("coverage") > 0.8 || r.Summary.Figure("limited_false_verdicts") != row.Figure("false_verdicts") || row.Text("limit") == "" || len(words(r.Summary, "over")) != 0 {
		t.Errorf("%+v, summary %+v", row, r.Summary)
	}
}

func TestSamplesAreAttemptsStretchesAndPairs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("workload,run,machine,t_seconds,instructions,watts\n")
	for run := range 16 {
		for i := range 20 {
			fmt.Fprintf(&b, "w,r%d,m,%g,%d,%g\n", run, float64(i+1)*(1+0.001*float64(run)), 1000, 5.0)
		}
	}
	r := runVerify(t, models.VerifyInput{Set: evaluate.Set{Samples: []evaluate.Table{evaluatetest.Table(t, "d/samples.csv", b.String(), evaluate.Samples)}}, Seeds: 4, Epochs: 6, Pairs: 8})
	for comparison, nulls := range map[string][]string{
		models.Job:   {"repeats as attempts, slices of equal work in random order", "slices of equal work of one run in their order"},
		models.Pairs: {"repeats of one setting at matching slices"},
	} {
		for _, null := range nulls {
			rows := rowsOf(r, comparison, null)
			if len(rows) != 10 || rows[0].Figure("false_verdicts") != 0 || rows[0].Text("data") != "d/samples.csv" {
				t.Errorf("%s: %d rows, %+v", null, len(rows), rows)
			}
			if (rows[0].Text("limit") != "") != strings.Contains(null, "their order") {
				t.Errorf("%s has the limit %q", null, rows[0].Text("limit"))
			}
		}
	}
}

func TestAFileWithoutANullIsLeftOutAndNamed(t *testing.T) {
	t.Parallel()
	once := evaluatetest.Table(t, "d/once.csv", "workload,machine,seconds\na,m,1\nb,m,2\n", evaluate.Trials)
	back := evaluatetest.Table(t, "d/back.csv", "workload,run,machine,t_seconds,cycles\n"+strings.Repeat("w,r,m,5,1\n", 20), evaluate.Samples)
	r := runVerify(t, models.VerifyInput{Set: evaluate.Set{Trials: []evaluate.Table{once}, Samples: []evaluate.Table{back}}, Seeds: 1, Epochs: 1, Pairs: 1})
	if len(words(r.Summary, "left_out")) != 2 || !strings.HasPrefix(words(r.Summary, "left_out")[1], "d/back.csv: ") || !strings.HasPrefix(words(r.Summary, "left_out")[0], "d/once.csv: ") || r.Data[0] != "d/once.csv" {
		t.Errorf("left out %q of %q", words(r.Summary, "left_out"), r.Data)
	}
}

// Runs are numbered alike on both machines, and one of them has no power.
func TestRunsOfTwoMachinesAreKeptApart(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("workload,run,machine,t_seconds,instructions,watts\n")
	for run := range 18 {
		for i := range 20 {
			for m, machine := range []string{"m", "n"} {
				watts := "5"
				if run == 3 && i == 7 {
					watts = "NA"
				}
				fmt.Fprintf(&b, "w,%d,%s,%g,%d,%s\n", run, machine, float64(i+1)*float64(m+1), 1000, watts)
			}
		}
	}
	r := runVerify(t, models.VerifyInput{Set: evaluate.Set{Samples: []evaluate.Table{evaluatetest.Table(t, "s.csv", b.String(), evaluate.Samples)}}, Seeds: 4, Epochs: 6, Pairs: 8})
	rows := rowsOf(r, models.Pairs, "repeats of one setting at matching slices")
	if len(rows) != 10 || rows[0].Figure("workloads") != 1 || rows[0].Figure("false_verdicts") != 0 || rows[5].Text("objective") != string(tuning.Energy) {
		t.Errorf("%d rows, %+v", len(rows), rows)
	}
}

// Epochs that shrink as a run goes on are a drift, which no comparison within a job can
// tell from an effect of time; those that stay are none.
func TestEpochsThatShrinkAreALimit(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("run,workload,machine,knob_x,epoch,seconds\n")
	for run := range 4 {
		steady, shrinking := 0.0, 0.0
		for e := 1; e <= 30; e++ {
			steady += 10 + .01*float64((e*7+run)%5)
			shrinking += 10 / math.Sqrt(float64(e))
			fmt.Fprintf(&b, "%d,steady,m,%d,%d,%g\n%d,shrinking,m,%d,%d,%g\n", run, run, e, steady, run, run, e, shrinking)
		}
	}
	r := runVerify(t, models.VerifyInput{Set: evaluate.Set{Curves: []evaluate.Table{evaluatetest.Table(t, "c.csv", b.String(), evaluate.Curves)}}, Seeds: 4, Epochs: 6, Pairs: 8})
	rows := rowsOf(r, models.Job, "epochs of one run in their order")
	if len(rows) != 10 || rows[0].Text("limit") != "" || rows[0].Figure("false_verdicts") != 0 || rows[5].Text("limit") == "" {
		t.Fatalf("%d rows, %+v", len(rows), rows)
	}
	if len(words(r.Summary, "over")) != 0 {
		t.Errorf("above the level: %q", words(r.Summary, "over"))
	}
}

func BenchmarkVerdicts(b *testing.B) {
	for b.Loop() {
		if _, err := models.Verify(b.Context(), full(models.VerifyInput{Seeds: 2}), evaluatetest.Quiet); err != nil {
			b.Fatal(err)
		}
	}
}

// The aim: at most one in twenty, however often it is looked at. Few replays leave
// much room for chance; `make bench-mind` takes ten times as many.
func TestRecordedRepeatsRarelyShowAnEffect(t *testing.T) {
	t.Parallel()
	in := models.VerifyInput{
		Set: evaluate.Set{Trials: evaluatetest.Recorded(t, evaluate.Trials, "zeus/trials.csv", "armpm/trials.csv"), Samples: evaluatetest.Recorded(t, evaluate.Samples, "armpm/samples.csv.gz"), Curves: evaluatetest.Recorded(t, evaluate.Adaptations, "rl-net2net/adaptations.csv")}, Seeds: 30, Pairs: 12, Epochs: 16,
	}
	r := runVerify(t, in)
	t.Logf("\n%s", r.Text())
	if len(words(r.Summary, "over")) > 0 || len(words(r.Summary, "left_out")) > 0 || r.Summary.Figure("coverage_min") < 0.85 {
		t.Errorf("%+v", r.Summary)
	}
	recorded := 0
	for _, row := range r.Rows {
		if row.Text("source") == models.Recorded && row.Figure("effect") == 0 {
			recorded++
		}
	}
	if recorded != 15 {
		t.Errorf("%d recorded nulls, want 15", recorded)
	}
}
