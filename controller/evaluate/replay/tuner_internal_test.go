package replay

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// drawn is a random table of two batch sizes or more, some runs of which never end.
func drawn(t *rapid.T, goal recurring.Goal, failures bool) *returns {
	var b strings.Builder
	b.WriteString("workload,machine,knob_batch,knob_power_limit_watts,epochs,epoch_seconds,watts,repeat\n")
	seconds, watts := rapid.Float64Range(1, 9), rapid.Float64Range(50, 300)
	batches, limits := rapid.IntRange(2, 5).Draw(t, "batches"), rapid.IntRange(1, 4).Draw(t, "limits")
	for i := range batches {
		repeats := rapid.SliceOfN(rapid.IntRange(1, 20), 1, 3).Draw(t, "epochs")
		for j := range limits {
			s, w := seconds.Draw(t, "seconds"), watts.Draw(t, "watts")
			for r, n := range repeats {
				epochs := fmt.Sprint(n)
				if failures && i == 0 && r == 0 {
					epochs = ""
				}
				fmt.Fprintf(&b, "a,m,%d,%d,%s,%g,%g,%d\n", 32<<i, 100+50*j, epochs, s, w, r)
			}
		}
	}
	file, err := evaluate.Parse("drawn.csv", strings.NewReader(b.String()), evaluate.Trials)
	if err != nil {
		t.Fatal(err)
	}
	return firstOfTable(t, file, goal, nil)
}

func goals() []recurring.Goal {
	return []recurring.Goal{
		{Measure: tuning.Measure{Objective: tuning.Energy}},
		{Measure: tuning.Measure{Objective: tuning.Blend, Weight: .5}},
		{Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 1.1},
		{Measure: tuning.Measure{Objective: tuning.EDP}},
		{Cores: true, MaxSlowdown: 1.05},
	}
}

func TestWhatIsPaidIsTheSumOfWhatWasMeasured(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		goal := rapid.SampledFrom(goals()).Draw(t, "goal")
		w := drawn(t, goal, rapid.Bool().Draw(t, "failures"))
		returns := rapid.IntRange(1, 20).Draw(t, "returns")
		w.seed(1)
		tuner, err := recurring.New(w.space, goal, 0)
		if err != nil {
			t.Fatal(err)
		}
		whole := &tuned{bill{returns: w}, tuner}
		final := follow(whole, returns)

		w.seed(1)
		again, err := recurring.New(w.space, goal, 0)
		if err != nil {
			t.Fatal(err)
		}
		var parts tuning.Spent
		for range returns {
			point := again.Course()
			for range patience {
				one := tuned{bill{returns: w}, again}
				reached := one.run(point)
				parts = parts.Plus(one.Spent)
				if reached {
					break
				}
				point = again.Best()
			}
		}
		if math.Abs(parts.Seconds-whole.Seconds) > 1e-6*whole.Seconds || math.Abs(parts.Joules-whole.Joules) > 1e-6*whole.Joules {
			t.Fatalf("paid %+v, in parts %+v", whole.Spent, parts)
		}
		if final != again.Best() {
			t.Fatal("the same luck ends with other settings")
		}
	})
}

func TestTheOracleIsNeverBeatenInExpectation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t, rapid.SampledFrom(goals()).Draw(t, "goal"), false)
		w.seed(1)
		tuner, err := recurring.New(w.space, w.goal, 0)
		if err != nil {
			t.Fatal(err)
		}
		final := follow(&tuned{bill{returns: w}, tuner}, rapid.IntRange(1, 30).Draw(t, "returns"))
		oracle := w.oracle(evaluate.Indices(w.cells))
		if w.keeps(final) && w.share(final) < w.share(oracle)-tolerance {
			t.Fatalf("%s at %g beats the oracle's %s at %g", w.chosen(final), w.share(final), w.chosen(oracle), w.share(oracle))
		}
		if w.share(oracle) > 1+tolerance {
			t.Fatalf("the oracle costs %g of the owner's", w.share(oracle))
		}
	})
}

// firstOfTable is the first job of a table.
func firstOfTable(t interface{ Fatal(...any) }, file evaluate.Table, goal recurring.Goal, own tuning.Settings) *returns {
	all, err := pieces([]evaluate.Table{file}, own)
	if err != nil {
		t.Fatal(err)
	}
	var left evaluate.LeftOut
	w := returnsOf(all[0], recurring.Goal{}, &left) // which leaves nothing out
	if len(left) > 0 {
		t.Fatal(left)
	}
	w.goal = goal
	return w
}
