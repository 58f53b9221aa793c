package models

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

func TestWhichVerdictsAreWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		verdict tuning.Verdict
		effect  float64
		wrong   bool
	}{
		{"no verdict is never wrong", tuning.Inconclusive, 0.2, false},
		{"an improvement that is none", tuning.Improved, 0, true},
		{"an improvement that is one", tuning.Improved, 0.02, false},
		{"a regression that is none", tuning.Regressed, 0, true},
		{"a regression where it improved", tuning.Regressed, 0.2, true},
		{"neutral where nothing changed", tuning.Neutral, 0, false},
		{"neutral within the margin", tuning.Neutral, 0.01, false},
		{"neutral outside the margin", tuning.Neutral, 0.05, true},
	} {
		if got := isWrong(c.verdict, c.effect); got != c.wrong {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

// rowsOf are intervals of a run: the end, the work and the watts of each.
func rowsOf(intervals ...[3]float64) []evaluate.Row {
	var out []evaluate.Row
	for i, v := range intervals {
		r := evaluate.Row{Line: i + 2, Workload: "w", Run: "r"}
		r.Set("t_seconds", v[0])
		r.Set("instructions", v[1])
		r.Set("watts", v[2])
		out = append(out, r)
	}
	return out
}

func TestSlicesHaveEqualWork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		rows []evaluate.Row
		n    int
		want []tuning.Spent
	}{
		{"intervals that fit", rowsOf([3]float64{1, 1, 5}, [3]float64{2, 1, 5}, [3]float64{4, 2, 10}), 2, []tuning.Spent{{Seconds: 2, Joules: 10}, {Seconds: 2, Joules: 20}}},
		{"an interval that is shared", rowsOf([3]float64{3, 3, 10}, [3]float64{5, 1, 20}), 2, []tuning.Spent{{Seconds: 2, Joules: 20}, {Seconds: 3, Joules: 50}}},
		{"an interval without work, which is no slice's", rowsOf([3]float64{1, 1, 5}, [3]float64{9, 0, 5}, [3]float64{10, 1, 5}), 2, []tuning.Spent{{Seconds: 1, Joules: 5}, {Seconds: 1, Joules: 5}}},
		{"watts that are missing once", rowsOf([3]float64{1, 1, 5}, [3]float64{2, 1, 0}), 2, []tuning.Spent{{Seconds: 1}, {Seconds: 1}}},
		{"no work at all", rowsOf([3]float64{1, 0, 5}), 1, nil},
	} {
		if diff := cmp.Diff(c.want, sliced(c.rows, c.n)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestSlicesOfARunSumUpToIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "intervals")
		at, joules := 0.0, 0.0
		var intervals [][3]float64
		for range n {
			d := rapid.Float64Range(0.01, 10).Draw(t, "seconds")
			w := rapid.Float64Range(0.1, 100).Draw(t, "watts")
			at += d
			joules += d * w
			intervals = append(intervals, [3]float64{at, rapid.Float64Range(1, 1e10).Draw(t, "work"), w})
		}
		pieces := rapid.IntRange(1, 20).Draw(t, "slices")
		got := sliced(rowsOf(intervals...), pieces)
		if len(got) != pieces {
			t.Fatalf("%d slices, want %d", len(got), pieces)
		}
		var seconds, sum float64
		for _, m := range got {
			seconds += m.Seconds
			sum += m.Joules
		}
		if math.Abs(seconds/at-1) > 1e-6 || math.Abs(sum/joules-1) > 1e-6 {
			t.Fatalf("%g s and %g J, want %g and %g", seconds, sum, at, joules)
		}
	})
}

func curve(t *testing.T, text string) []evaluate.Row {
	t.Helper()
	table, err := evaluate.Parse("a.csv", strings.NewReader(text), evaluate.Adaptations)
	if err != nil {
		t.Fatal(err)
	}
	return table.Rows
}

func TestAJobIsUndisturbedBetweenItsChanges(t *testing.T) {
	t.Parallel()
	rows := curve(t, "run,workload,scenario,epoch,seconds,action,epoch_seconds\n"+
		"r,w,s,1,10,,9\nr,w,s,2,20,,8\nr,w,s,3,30,deepen,7\nr,w,s,4,40,none,6\nr,w,s,5,52,none,\nr,w,s,6,60,none,5\n")
	want := [][]tuning.Spent{{{Seconds: 8}}, {{Seconds: 6}, {Seconds: 12}, {Seconds: 5}}}
	if diff := cmp.Diff(want, unchanged(rows)); diff != "" {
		t.Error(diff)
	}
}

// Repeats that are alike, and a tuned side that is a fifth less: eight pairs that all
// agree are the fewest that bring a verdict.
func TestAVerdictOverPairsThatAllAgreeComesWithTheEighth(t *testing.T) {
	t.Parallel()
	r := replay{pairs: slices.Repeat([][2][]tuning.Spent{{{{Seconds: 10}}, {{Seconds: 10}}}}, 12)}
	in := DefaultVerify()
	n := null{names: named(Pairs, "", Simulated, "", tuning.Time, "")}
	got := in.judge(n, r, 0.2)
	want := evaluate.Line{
		"looks_mean": evaluate.Figure(12), "coverage": evaluate.Figure(1), "coverage_last": evaluate.Figure(1), "power": evaluate.Figure(1), "to_verdict_median": evaluate.Figure(8),
		"false_verdicts": evaluate.Figure(0), "neutral": evaluate.Figure(0), "inconclusive": evaluate.Figure(0),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := in.judge(n, r, 0); got.Figure("false_verdicts") != 0 || got.Figure("power") != 0 || got.Figure("coverage") != 1 {
		t.Errorf("without an effect: %+v", got)
	}
}

func TestEachRunIsInOnePairAtMost(t *testing.T) {
	t.Parallel()
	in := DefaultVerify()
	var list [][]keyed
	id := 0.0
	for range 5 {
		var s []keyed
		for range 5 {
			id++
			s = append(s, keyed{workload: "w", epochs: []tuning.Spent{{Seconds: id}}})
		}
		list = append(list, s)
	}
	var used []float64
	for _, p := range in.drawPairs(rand.New(rand.NewPCG(1, 1)), kind{groups: list}).pairs {
		if int(p[0][0].Seconds-1)/5 != int(p[1][0].Seconds-1)/5 {
			t.Errorf("%v and %v are of different settings", p[0], p[1])
		}
		used = append(used, p[0][0].Seconds, p[1][0].Seconds)
	}
	slices.Sort(used)
	if len(used) != 20 || len(slices.Compact(used)) != 20 {
		t.Errorf("runs %v, want 20 different ones", used)
	}
}
