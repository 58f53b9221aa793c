package replay_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/test/fixtures"
)

// small is a table of two workloads: one whose cores share the work up to six of them
// and that does not fit into the least memory, and one whose runs all failed.
func smallSpeed(t testing.TB) evaluate.Table {
	t.Helper()
	var b strings.Builder
	b.WriteString("workload,machine,knob_cores,knob_memory_gib,knob_batch_size,samples_per_second,relative_speed,failed\n")
	for _, c := range []int{1, 2, 3, 4, 6, 9, 12, 24} {
		for _, m := range []int{8, 16, 32} {
			rate, relative := 100/(0.5+6/float64(min(c, 6))), 1.0
			if m == 8 {
				rate, relative = 10, 0.1
			}
			fmt.Fprintf(&b, "sp,box,%d,%d,100,%.6f,%g,\n", c, m, rate, relative)
		}
	}
	b.WriteString("lu,box,1,8,100,,,1\nlu,box,2,8,100,,,1\n")
	table, err := evaluate.Parse("small.csv", strings.NewReader(b.String()), evaluate.Trials)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func speedInput(tables ...evaluate.Table) replay.SpeedInput {
	return replay.SpeedInput{Set: evaluate.Set{Trials: tables}, Outcome: "samples_per_second", Samples: 6}
}

func runSpeed(t testing.TB, in replay.SpeedInput) evaluate.Report {
	t.Helper()
	r, err := replay.Speed(t.Context(), in, evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTheTextOfASmallSpeedReport(t *testing.T) {
	t.Parallel()
	in := speedInput(smallSpeed(t))
	got := runSpeed(t, in).Text()
	fixtures.Golden(t, *update, "testdata/speed.txt", got)
	if again := runSpeed(t, in).Text(); again != got {
		t.Errorf("a second time:\n%s", cmp.Diff(got, again))
	}
}

func TestACostIsForecastAsARateIs(t *testing.T) {
	t.Parallel()
	rates := smallSpeed(t)
	costs, err := evaluate.Parse("costs.csv", strings.NewReader(costsOf(rates)), evaluate.Trials)
	if err != nil {
		t.Fatal(err)
	}
	in := speedInput(costs)
	in.Outcome = "epoch_seconds"
	a, b := runSpeed(t, speedInput(rates)).Rows[0], runSpeed(t, in).Rows[0]
	if a.Figure("attained") != b.Figure("attained") || a.Text("chosen") == "" || b.Figure("error_mean") > 0.2 {
		t.Errorf("as a rate %+v, as a cost %+v", a, b)
	}
}

// costsOf is the table with the seconds of a batch instead of the rate.
func costsOf(t evaluate.Table) string {
	var b strings.Builder
	b.WriteString("workload,machine,knob_cores,knob_memory_gib,epoch_seconds,relative_speed,failed\n")
	for _, r := range t.Rows {
		rate, ok := r.Float("samples_per_second")
		if !ok {
			continue
		}
		relative, _ := r.Float("relative_speed")
		fmt.Fprintf(&b, "sp,box,%s,%s,%.9f,%g,\n", r.Knobs["cores"], r.Knobs["memory_gib"], 100/rate, relative)
	}
	return b.String()
}

func TestWhatDidNotRunIsNoPartOfAMean(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("workload,machine,input,knob_cores,knob_solver,samples_per_second,failed,note\n")
	for cores := 1; cores <= 8; cores++ {
		fmt.Fprintf(&b, "a,m,1,%d,x,%d,0,\na,m,1,%d,x,,True,crashed\na,m,2,%d,x,%d,False,\n", cores, 10*cores, cores, cores, 70*cores)
	}
	b.WriteString("a,m,1,9,x,0,0,stuck\na,m,1,3,x,,0,lost\na,m,1,3,x,-4,0,odd\na,m,1,4,x,,0,lost\n")
	r := runSpeed(t, speedInput(evaluatetest.Table(t, "x.csv", b.String(), evaluate.Trials)))
	if len(r.Rows) != 2 || r.Rows[0].Text("input") != "1" || r.Rows[0].Figure("settings") != 9 || r.Rows[1].Figure("settings") != 8 {
		t.Fatalf("%+v", r.Rows)
	}
	for _, row := range r.Rows {
		if row.Figure("unseen") == 0 || row.Figure("error_mean") > .1 || row.Figure("attained") != 1 {
			t.Errorf("%s/%s: error %v, attained %v: failed repeats, other inputs or stuck runs count", row.Text("workload"), row.Text("input"), row.Figure("error_mean"), row.Figure("attained"))
		}
	}
	want := []evaluate.Line{
		{"data": "x.csv", "workload": "a/1", "machine": "m", "rows": 2, "line": 27, "why": "samples_per_second is missing"},
		{"data": "x.csv", "workload": "a/1", "machine": "m", "rows": 1, "line": 28, "why": "samples_per_second is not above 0"},
	}
	if diff := cmp.Diff(want, r.Summary.Lines("left_out")); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if text := r.Text(); !strings.Contains(text, "INPUT") || !strings.Contains(text, "2     27") {
		t.Errorf("%s", text)
	}
}

func TestSettingsThatLackAKnobAreLeftOutAndListed(t *testing.T) {
	t.Parallel()
	const text = "workload,machine,knob_cores,knob_mode,seconds\na,m,1,fast,10\na,m,2,,6\na,m,,slow,9\na,m,4,fast,0\na,m,8,fast,5\na,m,,,7\n"
	in := speedInput(evaluatetest.Table(t, "x.csv", text, evaluate.Trials))
	in.Outcome = "seconds"
	r := runSpeed(t, in)
	want := []evaluate.Line{
		{"data": "x.csv", "workload": "a", "machine": "m", "rows": 2, "line": 4, "why": "its settings are not those that the other rows name: cores"},
		{"data": "x.csv", "workload": "a", "machine": "m", "rows": 1, "line": 5, "why": "seconds is not above 0"},
	}
	if diff := cmp.Diff(want, r.Summary.Lines("left_out")); diff != "" || r.Rows[0].Figure("settings") != 3 || r.Rows[0].Figure("attained") != 1 {
		t.Errorf("%+v, left out (-want +got):\n%s", r.Rows, diff)
	}
}

// TestTheAimsAreMetOnRecordedTrials holds what was reached on the development data. The
// margins when it was written: synergy 0.00 to 0.10 of error by workload and 0.034 on
// average, adaptdl 0.142 and 0.129, and the best setting attained everywhere. The choice
// on cifar10 is luck in part: with a quarter of the settings left out at random, in 11
// of 12 draws the best was attained, in one 0.67; its error was 0.151 on average.
func TestTheAimsAreMetOnRecordedTrials(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		file string
		most float64
	}{{"synergy/trials.csv", 0.10}, {"adaptdl/trials.csv", 0.15}} {
		t.Run(filepath.Dir(tc.file), func(t *testing.T) {
			t.Parallel()
			in := speedInput(evaluatetest.Recorded(t, evaluate.Trials, tc.file)...)
			in.Samples = 8
			r := runSpeed(t, in)
			for _, row := range r.Rows {
				if row.Figure("attained") < 0.95 || float64(row.Figure("error_mean")) > tc.most || row.Figure("samples") != 8 {
					t.Errorf("%s: error %.3f, attained %.3f with %v samples; want at most %g and at least 0.95 with 8",
						row.Text("workload"), row.Figure("error_mean"), row.Figure("attained"), row.Figure("samples"), tc.most)
				}
			}
		})
	}
}

func BenchmarkSpeed(b *testing.B) {
	in := speedInput(smallSpeed(b))
	for b.Loop() {
		runSpeed(b, in)
	}
}
