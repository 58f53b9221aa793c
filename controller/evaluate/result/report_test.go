package result_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/evaluate/result"
)

type inner struct {
	Figure result.Figure `json:"figure" about:"a figure" col:"FIGURE|1"`
}

type row struct {
	Name    string        `json:"name" about:"its name" col:"NAME"`
	Ratio   result.Figure `json:"ratio" about:"a ratio" col:"RATIO"`
	Note    string        `json:"note,omitempty" about:"a note" col:"NOTE"`
	Words   []string      `json:"words,omitempty" about:"words" col:"WORDS"`
	Aside   string        `json:"aside" about:"in the JSON alone"`
	Printed string        `json:"-" about:"in the text alone" col:"PRINTED"`
	inner
	Share result.Figure `json:"share" about:"a share" col:"SHARE|%"`
}

func (r row) Detail() bool { return r.Name == "detail" }

type summary struct {
	Mean  result.Figure `json:"mean" about:"of all"`
	Known *int          `json:"known" about:"null: unknown"`
	Rows  []row         `json:"rows" about:"a list"`
	Inner *inner        `json:"inner" about:"null: none"`
}

func report() result.Report[row, summary] {
	return result.Report[row, summary]{
		Command: "evaluate luck", Data: []string{"a <b>.csv"},
		Rows: []row{
			{Name: "x", Ratio: result.Figure(math.Inf(1)), Words: []string{"a", "b"}, Printed: "p", inner: inner{3}, Share: .5},
			{Name: "detail", Ratio: 7},
			{Name: "y", Ratio: 1.23456, Aside: "z", inner: inner{result.Unknown()}},
		},
		Summary: summary{Mean: result.Unknown(), Known: new(3), Rows: []row{{Name: "s"}}, Inner: &inner{2}},
	}
}

func TestAFigureThatIsNotFiniteIsNullAndRefusesNothingElse(t *testing.T) {
	t.Parallel()
	r := report()
	r.Rows, r.Summary.Rows = r.Rows[:1], nil
	got, err := json.Marshal(r)
	want := `{"command":"evaluate luck","data":["a \u003cb\u003e.csv"],"rows":[{"name":"x","ratio":null,"words":["a","b"],"aside":"","figure":3,"share":0.5}],` +
		`"summary":{"mean":null,"known":3,"rows":null,"inner":{"figure":2}}}`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	var back result.Report[row, summary]
	if err := json.Unmarshal(got, &back); err != nil || back.Rows[0].Ratio.Known() || back.Rows[0].Share != .5 {
		t.Errorf("%v: read back as %+v", err, back)
	}
	none, err := json.Marshal(result.Report[row, inner]{})
	if want := `{"command":"","data":[],"rows":[],"summary":{"figure":0}}`; err != nil || string(none) != want {
		t.Errorf("%v: %s, want %s", err, none, want)
	}
}

func TestTheTextHasTheColumnsThatAreNotEmptyAndEachKeyOfTheSummary(t *testing.T) {
	t.Parallel()
	want := "NAME  RATIO  WORDS  PRINTED  FIGURE  SHARE\n" +
		"x     -      a | b  p        3.0     50 %\n" +
		"y     1.235  -      -        -       0 %\n\n" +
		"mean   -  of all\nknown  3  null: unknown\n\n" +
		"rows: a list\nNAME  RATIO  FIGURE  SHARE\ns     0.000  0.0     0 %\n\n" +
		"inner.figure  2.0  a figure\n"
	if diff := cmp.Diff(want, report().Text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheMeanOfRowsIsOverWhatIsKnown(t *testing.T) {
	t.Parallel()
	got := result.Average([]row{{Name: "a", Ratio: 1, Share: .85}, {Name: "b", Ratio: 3, Share: .85, inner: inner{result.Unknown()}}, {Ratio: result.Unknown(), Share: .85}})
	if got.Name != "a" || got.Ratio != 2 || got.Share != .85 || got.Figure != 0 {
		t.Errorf("%+v", got)
	}
}

func TestWhatThereIsNothingOfIsUnknown(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]result.Figure{
		"share": result.Share(0, 0), "mean": result.Mean([]float64{}), "geometric mean": result.Geometric([]float64{}),
		"median": result.Median([]float64{}), "median beyond all": result.Median([]float64{1, math.Inf(1), math.Inf(1)}),
	} {
		if f.Known() || f.Print(1) != "-" {
			t.Errorf("%s: %v", name, f)
		}
	}
	if least, most := result.Range([]float64{}); least.Known() || most.Known() {
		t.Errorf("%v to %v of nothing", least, most)
	}
	if least, most := result.Range([]float64{3, math.NaN(), 2}); least != 2 || most != 3 {
		t.Errorf("%v to %v", least, most)
	}
	if m := result.GeometricOf([]float64{2, 8}); math.Abs(float64(m)-4) > 1e-12 || result.Median([]float64{3, 1, 2, 9}) != 2.5 {
		t.Errorf("geometric mean %v", m)
	}
}

func TestRowsLeftOutForOneReasonAreCountedTogether(t *testing.T) {
	t.Parallel()
	var all []result.LeftOut
	for i, why := range []string{"late", "late", "lost", "late"} {
		all = result.Leave(all, result.LeftOut{Data: "x.csv", Workload: "a", Machine: "m", Rows: 1, Line: i + 2, Why: why})
	}
	all = result.Leave(all, result.LeftOut{Data: "x.csv", Workload: "b", Why: "nothing"})
	all = result.Leave(all, result.LeftOut{Data: "x.csv", Workload: "b", Why: "nothing"})
	if len(all) != 4 || all[0].Rows != 3 || all[0].Line != 2 || all[1].Rows != 1 {
		t.Errorf("%+v", all)
	}
}
