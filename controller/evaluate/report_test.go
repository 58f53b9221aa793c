package evaluate_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/evaluate"
)

type inner struct {
	Figure float64  `json:"figure"`
	Known  *float64 `json:"known,omitempty"`
}

type row struct {
	Name    string             `json:"name"`
	Ratio   float64            `json:"ratio"`
	Missing *float64           `json:"missing"`
	Note    string             `json:"note,omitempty"`
	List    []float64          `json:"list"`
	Parts   []inner            `json:"parts,omitempty"`
	By      map[string]float64 `json:"by,omitempty"`
	inner
	Skipped int `json:"-"`
	hidden  float64
}

func TestAFigureThatIsNotFiniteIsNullAndRefusesNothingElse(t *testing.T) {
	t.Parallel()
	r := evaluate.Report[row, inner]{
		Command: "evaluate luck", Data: []string{"a <b>.csv"},
		Rows: []row{{
			Name: "x", Ratio: math.Inf(1), Missing: new(math.NaN()), List: []float64{1, math.NaN()}, hidden: math.NaN(),
			Parts: []inner{{Figure: math.Inf(-1)}}, By: map[string]float64{"b": 2, "a": math.NaN()}, inner: inner{Figure: 3},
		}},
		Summary: inner{Figure: math.NaN(), Known: new(0.5)},
	}
	got, err := json.Marshal(r)
	want := `{"command":"evaluate luck","data":["a \u003cb\u003e.csv"],"rows":[{"name":"x","ratio":null,"missing":null,"list":[1,null],` +
		`"parts":[{"figure":null}],"by":{"a":null,"b":2},"figure":3}],"summary":{"figure":null,"known":0.5}}`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	none, err := json.Marshal(evaluate.Report[row, inner]{})
	if want := `{"command":"","data":[],"rows":[],"summary":{"figure":0}}`; err != nil || string(none) != want {
		t.Errorf("%v: %s, want %s", err, none, want)
	}
}

// plain is a report that encoding/json writes by itself.
type plain evaluate.Report[row, inner]

func TestFiniteReportsAreWrittenAsTheyWouldBe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		figure := rapid.Float64().Filter(func(v float64) bool { return !math.IsInf(v, 0) && !math.IsNaN(v) })
		one := func() row {
			r := row{Name: rapid.String().Draw(t, "name"), Ratio: figure.Draw(t, "ratio"), Note: rapid.String().Draw(t, "note")}
			if rapid.Bool().Draw(t, "told") {
				r.Missing, r.List = new(figure.Draw(t, "missing")), rapid.SliceOf(figure).Draw(t, "list")
				r.By = rapid.MapOf(rapid.String(), figure).Draw(t, "by")
				r.Parts = []inner{{Figure: figure.Draw(t, "figure")}}
			}
			return r
		}
		report := evaluate.Report[row, inner]{Command: "c", Data: []string{"d"}, Rows: []row{one(), one()}}
		got, err := json.Marshal(report)
		want, wrong := json.Marshal(plain(report))
		if err != nil || wrong != nil {
			t.Fatal(err, wrong)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

func TestRowsLeftOutForOneReasonAreToldOfOnce(t *testing.T) {
	t.Parallel()
	var all []evaluate.LeftOut
	for i, why := range []string{"late", "late", "lost", "late"} {
		all = evaluate.Leave(all, evaluate.LeftOut{Data: "x.csv", Workload: "a", Machine: "m", Rows: 1, Line: i + 2, Why: why})
	}
	all = evaluate.Leave(all, evaluate.LeftOut{Data: "x.csv", Workload: "b", Why: "nothing"})
	want := "\nLEFT OUT  MACHINE  FILE   ROWS            WHY\n" +
		"a         m        x.csv  3, from line 2  late\na         m        x.csv  1, from line 4  lost\nb                  x.csv  all             nothing\n"
	if diff := cmp.Diff(want, evaluate.LeftOutText(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if evaluate.LeftOutText(nil) != "" {
		t.Error("nothing was left out and something is said")
	}
}
