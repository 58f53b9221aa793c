package keys_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/classifier"
	"pitchpipe/controller/evaluate/forecast"
	"pitchpipe/controller/evaluate/hyper"
	"pitchpipe/controller/evaluate/keys"
	"pitchpipe/controller/evaluate/plan"
	"pitchpipe/controller/evaluate/regret"
	"pitchpipe/controller/evaluate/search"
	"pitchpipe/controller/evaluate/speed"
	"pitchpipe/controller/evaluate/tuner"
	"pitchpipe/controller/evaluate/verify"
)

var update = flag.Bool("update", false, "rewrite the page")

// reports are those of all evaluations.
func reports() map[string]any {
	return map[string]any{
		"evaluate tuner": tuner.Report{}, "evaluate classifier": classifier.Report{}, "evaluate regret": regret.Report{},
		"evaluate forecast": forecast.Report{}, "evaluate speed": speed.Report{}, "evaluate search": search.Report{},
		"evaluate hyper": hyper.Report{}, "evaluate plan": plan.Report{}, "evaluate verify": verify.Report{},
	}
}

// encoded are the keys of a type, in the order in which they are written.
func encoded(t reflect.Type, prefix string) []string {
	var out []string
	for _, f := range evaluate.Fields(t) {
		out = append(out, prefix+f.Key)
		inner, point := f.Type, "."
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice {
			if inner.Kind() == reflect.Slice {
				point = "[]."
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && !inner.Implements(reflect.TypeFor[json.Marshaler]()) {
			out = append(out, encoded(inner, prefix+f.Key+point)...)
		}
	}
	return out
}

func names(list []keys.Key) []string {
	var out []string
	for _, k := range list {
		out = append(out, k.Name)
	}
	return out
}

func TestTheKeysAreThoseThatAreEncoded(t *testing.T) {
	t.Parallel()
	all := reports()
	for _, e := range keys.All() {
		report, ok := all[e.Command]
		if !ok {
			t.Fatalf("no report of %q", e.Command)
		}
		delete(all, e.Command)
		of := reflect.TypeOf(report)
		rows, _ := of.FieldByName("Rows")
		summary, _ := of.FieldByName("Summary")
		if diff := cmp.Diff(names(e.Rows), encoded(rows.Type.Elem(), "")); diff != "" {
			t.Errorf("%s, keys of a row (-told +encoded): a key that others read keeps its name\n%s", e.Command, diff)
		}
		if diff := cmp.Diff(names(e.Summary), encoded(summary.Type, "")); diff != "" {
			t.Errorf("%s, keys of the summary (-told +encoded): a key that others read keeps its name\n%s", e.Command, diff)
		}
		for _, k := range append(e.Rows, e.Summary...) {
			if k.Meaning == "" {
				t.Errorf("%s: nothing is said of %s", e.Command, k.Name)
			}
		}
	}
	for command := range all {
		t.Errorf("the keys of %q are told nowhere", command)
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
	for _, e := range keys.All() {
		for _, c := range []struct {
			want []string
			have []keys.Key
		}{{agreed[e.Command], e.Rows}, {summary[e.Command], e.Summary}} {
			for _, name := range c.want {
				if !strings.Contains(" "+strings.Join(names(c.have), " ")+" ", " "+name+" ") {
					t.Errorf("%s has no %s", e.Command, name)
				}
			}
		}
	}
}

// spoil fills every figure of a value with what JSON cannot hold.
func spoil(v reflect.Value, with float64) {
	switch v.Kind() { //nolint:exhaustive // what else there is holds no figure
	case reflect.Float64:
		v.SetFloat(with)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		spoil(v.Elem(), with)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		spoil(v.Index(0), with)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		inner := reflect.New(v.Type().Elem()).Elem()
		spoil(inner, with)
		v.SetMapIndex(reflect.Zero(v.Type().Key()), inner)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i), with)
			}
		}
	}
}

func TestWhatIsNotFiniteIsNullInEveryReport(t *testing.T) {
	t.Parallel()
	for command, report := range reports() {
		for _, with := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			v := reflect.New(reflect.TypeOf(report)).Elem()
			spoil(v, with)
			text, err := json.Marshal(v.Interface())
			if err != nil {
				t.Errorf("%s with %g: %v", command, with, err)
				continue
			}
			if !json.Valid(text) || !strings.Contains(string(text), "null") {
				t.Errorf("%s with %g: %s", command, with, text)
			}
		}
	}
}

// page is the reference of the keys.
func page() string {
	var b strings.Builder
	b.WriteString("# The keys of the evaluations\n\n" +
		"This page is generated: `go test ./controller/evaluate/keys -update`.\n\n" +
		"With `--json` each `pitchpipe evaluate` prints one object: `command`, the words behind `pitchpipe`; `data`, the files as\n" +
		"they were named; `rows`, a list; and `summary`. A figure that is not known is null, never 0. Ratios and errors are plain\n" +
		"fractions. Keys stay: new ones may be added. A key of an object within another stands behind a point, of the objects of\n" +
		"a list behind `[]`.\n")
	for _, e := range keys.All() {
		fmt.Fprintf(&b, "\n## %s\n", e.Command)
		for _, part := range []struct {
			title string
			keys  []keys.Key
		}{{"each of rows", e.Rows}, {"summary", e.Summary}} {
			fmt.Fprintf(&b, "\n| %s | meaning |\n|---|---|\n", part.title)
			for _, k := range part.keys {
				fmt.Fprintf(&b, "| `%s` | %s |\n", k.Name, strings.ReplaceAll(k.Meaning, "|", `\|`))
			}
		}
	}
	return b.String()
}

func TestThePageOfTheKeys(t *testing.T) {
	t.Parallel()
	const path = "KEYS.md"
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
