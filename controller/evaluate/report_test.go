package evaluate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate"
)

func commands() []string {
	return strings.Fields("tuner classifier regret forecast speed search hyper plan verify")
}

// Each key has a meaning, and a report without any value is written all the same.
func TestEachKeyHasAMeaning(t *testing.T) {
	t.Parallel()
	var check func(name string, keys []evaluate.Key)
	check = func(name string, keys []evaluate.Key) {
		if len(keys) == 0 {
			t.Errorf("%s has no keys", name)
		}
		for _, k := range keys {
			if k.Name == "" || k.About == "" {
				t.Errorf("%s: %+v lacks a name or a meaning", name, k)
			}
			if k.Inner != nil {
				check(name+" "+k.Name, k.Inner)
			}
		}
	}
	for _, c := range commands() {
		rows, summary := evaluate.Keys("evaluate " + c)
		check(c+" rows", rows)
		check(c+" summary", summary)
		if text, err := json.Marshal(evaluate.Report{Command: "evaluate " + c}); err != nil || !strings.Contains(string(text), `"rows":[]`) || !json.Valid(text) {
			t.Errorf("%s: %v: %s", c, err, text)
		}
	}
}

// Others read the keys: one that changes its name breaks them.
func TestTheAgreedKeysAreThere(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"tuner": "workload machine recurrences seeds oracle_ratio final_ratio cumulative_ratio cumulative_energy_ratio " +
			"random_cumulative_ratio grid_cumulative_ratio single_knob_cumulative_ratio reference_cumulative_energy_ratio",
		"forecast": "workload seen runs final_error_median target_error_median last_value_error_median " +
			"best_single_error_median interval80_coverage unknown_share",
		"speed":      "workload machine settings samples error_mean attained",
		"search":     "workload machine method budget log_ratio_mean found_over_optimum_mean",
		"hyper":      "workload method seconds regret_mean",
		"classifier": "k recognised precision unknown_auc unknown_auc_min unknown_called_known",
	} {
		rows, summary := evaluate.Keys("evaluate " + command)
		for name := range strings.FieldsSeq(want) {
			if !slices.ContainsFunc(slices.Concat(rows, summary), func(k evaluate.Key) bool { return k.Name == name }) {
				t.Errorf("%s lacks %s", command, name)
			}
		}
	}
}

func TestANameInALogCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	r := evaluate.Report{Command: "durations", Summary: evaluate.Line{"terms": []evaluate.Line{{"term": "user\x1b", "longest": []string{"e\x1bve"}}}}}
	if text := r.Text(); strings.Contains(text, "\x1b") || !strings.Contains(text, "e?ve") {
		t.Errorf("%q", text)
	}
}

// report is one of evaluate speed, whose rows, means and single figures are few.
func report() evaluate.Report {
	return evaluate.Report{
		Command: "evaluate speed", Data: []string{"a <b>.csv"},
		Rows: []evaluate.Line{
			{"workload": "x", "machine": "m", "input": "1", "settings": 3, "error_mean": evaluate.Figure(math.Inf(1)), "error_max": evaluate.Figure(1.23456)},
			{"workload": "hidden", "attained": evaluate.Figure(7)},
			{"workload": "y", "settings": 0, "error_mean": evaluate.Unknown(), "chosen": "cores=1"},
		},
		Summary: evaluate.Line{"rows": 3, "error_mean": evaluate.Unknown(), "left_out": []evaluate.Line{{"data": "d", "workload": "w", "why": "late", "rows": 2}}},
		Hidden:  func(l evaluate.Line) bool { return l.Text("workload") == "hidden" },
	}
}

func TestTheJSONHasEachKeyInOrderAndNullForWhatIsUnknown(t *testing.T) {
	t.Parallel()
	r := report()
	r.Rows = r.Rows[:1]
	got, err := json.Marshal(r)
	want := `{"command":"evaluate speed","data":["a \u003cb\u003e.csv"],"rows":[{"workload":"x","machine":"m","input":"1","settings":3,` +
		`"samples":null,"failed":null,"unseen":null,"error_mean":null,"error_max":1.23456,"attained":null,"chosen":null}],` +
		`"summary":{"rows":3,"error_mean":null,"error_mean_max":null,"attained_min":null,` +
		`"left_out":[{"data":"d","workload":"w","machine":null,"rows":2,"why":"late"}]}}`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	r.Rows[0]["luck"] = 1
	if _, err := json.Marshal(r); err == nil || !strings.Contains(err.Error(), "KEYS.md lacks the key luck") {
		t.Errorf("a key that the page lacks: %v", err)
	}
}

func TestTheTextHasTheColumnsThatAreNotEmptyAndEachKeyOfTheSummary(t *testing.T) {
	t.Parallel()
	want := "WORKLOAD  MACHINE  INPUT  SETTINGS  WORST  CHOSEN\n" +
		"x         m        1      3         1.23   -\n" +
		"y         -        -      0         -      cores=1\n\n" +
		"rows            3  how many rows there are\n" +
		"error_mean      -  mean of the rows\n" +
		"error_mean_max  -  greatest error_mean of a row\n" +
		"attained_min    -  least attained of a row\n\n" +
		"left_out: rows that could not be used\nLEFT OUT  ROWS  WHY\nw         2     late\n"
	if diff := cmp.Diff(want, report().Text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheMeanOfRowsIsOverWhatIsKnown(t *testing.T) {
	t.Parallel()
	got := evaluate.Average([]evaluate.Line{
		{"name": "a", "ratio": evaluate.Figure(1), "share": evaluate.Figure(.85), "other": evaluate.Figure(0)},
		{"name": "b", "ratio": evaluate.Figure(3), "share": evaluate.Figure(.85), "other": evaluate.Unknown()},
		{"ratio": evaluate.Unknown(), "share": evaluate.Figure(.85)},
	})
	want := evaluate.Line{"name": "a", "ratio": evaluate.Figure(2), "share": evaluate.Figure(.85), "other": evaluate.Figure(0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatThereIsNothingOfIsUnknown(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]evaluate.Figure{
		"share": evaluate.Share(0, 0), "mean": evaluate.Mean([]float64{}), "geometric mean": evaluate.Geometric([]float64{}),
		"median": evaluate.Median([]float64{}), "median beyond all": evaluate.Median([]float64{1, math.Inf(1), math.Inf(1)}),
		"missing key": evaluate.Line{}.Figure("x"),
	} {
		if f.Known() || f.Print(1) != "-" {
			t.Errorf("%s: %v", name, f)
		}
	}
	if least, most := evaluate.Range([]float64{}); least.Known() || most.Known() {
		t.Errorf("%v to %v of nothing", least, most)
	}
	if least, most := evaluate.Range([]float64{3, math.NaN(), 2}); least != 2 || most != 3 {
		t.Errorf("%v to %v", least, most)
	}
	if m := evaluate.GeometricOf([]float64{2, 8}); math.Abs(float64(m)-4) > 1e-12 || evaluate.Median([]float64{3, 1, 2, 9}) != 2.5 {
		t.Errorf("geometric mean %v", m)
	}
}

func TestRowsLeftOutForOneReasonAreCountedTogether(t *testing.T) {
	t.Parallel()
	var all evaluate.LeftOut
	for i, why := range []string{"late", "late", "lost", "late"} {
		all.Add(evaluate.Group{File: "x.csv", Workload: "a", Machine: "m"}, []evaluate.Row{{Line: i + 2}}, why)
	}
	whole := evaluate.Group{File: "x.csv", Workload: "b"}
	all.Add(whole, nil, "nothing")
	all.Add(whole, nil, "nothing")
	if len(all) != 4 || all[0]["rows"] != 3 || all[0]["line"] != 2 || all[1]["rows"] != 1 {
		t.Errorf("%+v", all)
	}
}

func quiet(int, int, string) {}

func TestEachPartIsDoneOnceAndReported(t *testing.T) {
	t.Parallel()
	var reported []int
	var r evaluate.Report
	err := r.Fill(t.Context(), 20, func(d, total int, what string) {
		if total != 20 || what == "" {
			t.Errorf("reported %q, %d of %d", what, d, total)
		}
		reported = append(reported, d)
	}, func(_ context.Context, i int) (string, []evaluate.Line, error) {
		return fmt.Sprint(i), []evaluate.Line{{"i": i}}, nil
	})
	inOrder := func(a, b evaluate.Line) int { return int(a.Figure("i") - b.Figure("i")) }
	if err != nil || len(r.Rows) != 20 || !slices.IsSortedFunc(r.Rows, inOrder) || !slices.IsSorted(reported) || len(reported) != 20 {
		t.Errorf("%v: %v, reported %v", err, r.Rows, reported)
	}
}

var errBad = errors.New("bad")

func TestAPartThatFailsEndsTheRest(t *testing.T) {
	t.Parallel()
	var r evaluate.Report
	err := r.Fill(t.Context(), 1000, quiet, func(ctx context.Context, i int) (string, []evaluate.Line, error) {
		if i == 0 {
			return "", nil, errBad
		}
		<-ctx.Done()
		return "", nil, ctx.Err()
	})
	if !errors.Is(err, errBad) {
		t.Errorf("%v, want %v", err, errBad)
	}
}
