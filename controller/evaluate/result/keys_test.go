package result_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate/models"
	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/evaluate/result"
)

var update = flag.Bool("update", false, "rewrite the page")

// reports are those of all evaluations, in the order of the page.
func reports() []any {
	return []any{
		replay.TunerReport{Command: "evaluate tuner"},
		models.ClassifierReport{Command: "evaluate classifier"},
		models.RegretReport{Command: "evaluate regret"},
		models.ForecastReport{Command: "evaluate forecast"},
		replay.SpeedReport{Command: "evaluate speed"},
		replay.SearchReport{Command: "evaluate search"},
		replay.HyperReport{Command: "evaluate hyper"},
		replay.PlanReport{Command: "evaluate plan"},
		models.VerifyReport{Command: "evaluate verify"},
	}
}

// key is one key of an evaluation. One within an object stands behind a point, one within
// the objects of a list behind [].
type key struct{ name, about string }

// keysOf are the keys of a type, in the order in which they are written.
func keysOf(t reflect.Type, prefix string) []key {
	var out []key
	for _, f := range result.Fields(t) {
		if f.Key == "-" {
			continue
		}
		out = append(out, key{prefix + f.Key, f.About})
		inner, point := f.Type, "."
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				point = "[]."
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			out = append(out, keysOf(inner, prefix+f.Key+point)...)
		}
	}
	return out
}

// parts are the keys of the rows and of the summary of a report.
func parts(report any) (command string, rows, summary []key) {
	v := reflect.ValueOf(report)
	return v.FieldByName("Command").String(), keysOf(v.FieldByName("Rows").Type().Elem(), ""), keysOf(v.FieldByName("Summary").Type(), "")
}

// The page is the list of keys that others read: a key that changes its name changes it.
// Each key has a meaning, and each figure may be unknown.
func TestEachKeyHasAMeaningAndEachFigureMayBeUnknown(t *testing.T) {
	t.Parallel()
	for _, report := range reports() {
		command, rows, summary := parts(report)
		for _, k := range append(rows, summary...) {
			if k.about == "" || k.name == "" || strings.HasSuffix(k.name, ".") {
				t.Errorf("%s: nothing is said of %q", command, k.name)
			}
		}
		v := reflect.ValueOf(report)
		for _, of := range []reflect.Type{v.FieldByName("Rows").Type().Elem(), v.FieldByName("Summary").Type()} {
			for _, f := range result.Fields(of) {
				if strings.Contains(f.Type.String(), "float64") {
					t.Errorf("%s: %s is a number that JSON cannot hold where it is not finite", command, f.Key)
				}
			}
		}
		if text, err := json.Marshal(report); err != nil || !strings.Contains(string(text), `"rows":[]`) {
			t.Errorf("%s: %v: %s", command, err, text)
		}
	}
}

// The rows carry at least what was agreed.
func TestTheAgreedKeysAreThere(t *testing.T) {
	t.Parallel()
	agreed := map[string][]string{
		"evaluate tuner": strings.Fields("workload machine recurrences seeds oracle_ratio final_ratio cumulative_ratio cumulative_energy_ratio " +
			"random_cumulative_ratio grid_cumulative_ratio single_knob_cumulative_ratio reference_cumulative_energy_ratio"),
		"evaluate forecast": strings.Fields("workload seen runs final_error_median target_error_median last_value_error_median " +
			"best_single_error_median interval80_coverage unknown_share"),
		"evaluate speed":  strings.Fields("workload machine settings samples error_mean attained"),
		"evaluate search": strings.Fields("workload machine method budget log_ratio_mean found_over_optimum_mean"),
		"evaluate hyper":  strings.Fields("workload method seconds regret_mean"),
	}
	summary := map[string][]string{"evaluate classifier": strings.Fields("k recognised precision unknown_auc unknown_auc_min unknown_called_known")}
	for _, report := range reports() {
		command, rows, sums := parts(report)
		for _, c := range []struct {
			want []string
			have []key
		}{{agreed[command], rows}, {summary[command], sums}} {
			for _, name := range c.want {
				if !slices.ContainsFunc(c.have, func(k key) bool { return k.name == name }) {
					t.Errorf("%s has no %s", command, name)
				}
			}
		}
	}
}

// page is the reference of the keys.
func page() string {
	var b strings.Builder
	b.WriteString("# The keys of the evaluations\n\n" +
		"This page is generated: `go test ./controller/evaluate/result -update`.\n\n" +
		"With `--json` each `pitchpipe evaluate` prints one object: `command`, the words behind `pitchpipe`; `data`, the files as\n" +
		"they were named; `rows`, a list; and `summary`. A figure that is unknown is null, never 0. Ratios and errors are plain\n" +
		"fractions. Keys stay: new ones may be added. A key of an object within another stands behind a point, of the objects of\n" +
		"a list behind `[]`.\n")
	for _, report := range reports() {
		command, rows, summary := parts(report)
		fmt.Fprintf(&b, "\n## %s\n", command)
		for _, part := range []struct {
			title string
			keys  []key
		}{{"each of rows", rows}, {"summary", summary}} {
			fmt.Fprintf(&b, "\n| %s | meaning |\n|---|---|\n", part.title)
			for _, k := range part.keys {
				fmt.Fprintf(&b, "| `%s` | %s |\n", k.name, strings.ReplaceAll(k.about, "|", `\|`))
			}
		}
	}
	return b.String()
}

func TestThePageOfTheKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "KEYS.md")
	got := page()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), got); diff != "" {
		t.Errorf("%s (-have +want):\n%s", path, diff)
	}
}
