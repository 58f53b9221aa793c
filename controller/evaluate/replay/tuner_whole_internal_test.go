package replay

import (
	"math"
	"strings"
	"testing"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// recordedTable is a table of cores and threads: fewer cores are cheaper down to two, and
// more threads than cores are a loss.
const recordedTable = `workload,machine,knob_cores,knob_threads,seconds,joules
w,m,1,1,40,420
w,m,2,1,40,500
w,m,4,1,40,700
w,m,8,1,41,1100
w,m,1,2,43,440
w,m,2,2,22,300
w,m,4,2,22,430
w,m,8,2,22,640
w,m,1,4,47,470
w,m,2,4,24,320
w,m,4,4,14,310
w,m,8,4,14,420
w,m,1,8,55,500
w,m,2,8,28,350
w,m,4,8,17,350
w,m,8,8,12,400
`

func returnsIn(t *testing.T, text string, goal recurring.Goal) *returns {
	t.Helper()
	file, err := evaluate.Parse("recorded.csv", strings.NewReader(text), evaluate.Trials)
	if err != nil {
		t.Fatal(err)
	}
	w := firstOfTable(t, file, goal, tuning.Settings{tuning.Cores: tuning.Number(8), tuning.Threads: tuning.Number(8)})
	w.seed(1)
	return w
}

// The controller asks search.Returning, the evaluation asks recurring.Whole: over one recorded
// table both give every return the same settings.
func TestTheControllerChoosesWhatTheEvaluationMeasures(t *testing.T) {
	t.Parallel()
	w := returnsIn(t, recordedTable, recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 3})
	own := w.space.Points[w.space.Own]
	values := []tuning.Value{tuning.Number(1), tuning.Number(2), tuning.Number(4), tuning.Number(8)}
	policy := tuning.DefaultPolicy()
	policy.Objective, policy.MaxSlowdown, policy.Budget.Returns = tuning.Energy, 3, 100
	policy.Knobs = []tuning.Knob{{Name: tuning.Cores, Values: values}, {Name: tuning.Threads, Env: "T", Values: values}}
	kind := search.Returning{Policy: policy, Own: own, Space: search.Space(policy, own, 5)}
	past := recurring.Whole{Space: w.space, Goal: w.goal}
	tried := 0
	for n := range 16 {
		advice, err := past.Next()
		if err != nil {
			t.Fatal(err)
		}
		proposal := kind.Propose()
		point, chosen := advice.Best.Point, own
		if proposal.Best != nil {
			chosen = proposal.Best.Settings
		}
		if advice.Trying != (len(proposal.Next) > 0) || n%2 == 1 && advice.Trying && !proposal.Next.Equal(w.space.Points[advice.Next.Point]) {
			t.Fatalf("return %d: the evaluation would try %v (%s), the controller %v", n, advice.Trying, w.space.Points[advice.Next.Point], proposal.Next)
		}
		if !chosen.Equal(w.space.Points[advice.Best.Point]) {
			t.Fatalf("return %d: the evaluation knows %s as the best, the controller %s", n, w.space.Points[advice.Best.Point], chosen)
		}
		if math.Abs(advice.Next.Ratio-proposal.Expected) > tolerance && advice.Trying {
			t.Fatalf("return %d: expected %g and %g", n, advice.Next.Ratio, proposal.Expected)
		}
		if advice.Trying && n%2 == 1 {
			point = advice.Next.Point
			tried++
		}
		one := whole{bill: bill{returns: w}, past: past}
		one.run(point)
		past = one.past
		joules := tuning.Joules(w.cost(point).Joules)
		kind.Past = append(kind.Past, tuning.PastRun{
			Began: w.space.Points[point], End: tuning.EndReached, Epochs: 1, Trying: point != advice.Best.Point,
			Trials: []tuning.Trial{{Settings: w.space.Points[point], Epochs: 1, Seconds: w.cost(point).Seconds, Joules: &joules, Source: "rapl"}},
		})
	}
	end, err := past.Next()
	if err != nil {
		t.Fatal(err)
	}
	if w.share(end.Best.Point) > 0.9 || tried == 0 {
		t.Errorf("after %d tries the best known is %s at %.2f of the owner's", tried, w.space.Points[end.Best.Point], w.share(end.Best.Point))
	}
	t.Logf("%d tries, %s at %.2f of the owner's, the oracle at %.2f", tried, w.space.Points[end.Best.Point], w.share(end.Best.Point), w.share(w.oracle(evaluate.Indices(w.cells))))
}

func TestAReplayOfWholeRunsKeepsItsBudget(t *testing.T) {
	t.Parallel()
	for _, tries := range []int{1, 3, 6} {
		w := returnsIn(t, recordedTable, recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}})
		past := whole{bill: bill{returns: w}, past: recurring.Whole{Space: w.space, Goal: w.goal}, tries: tries}
		final := follow(&past, 20)
		if past.err != nil || past.tried > tries || w.share(final) > 1+tolerance || !(past.Seconds > 0) {
			t.Errorf("%d tries of %d, ended at %g, error %v", past.tried, tries, w.share(final), past.err)
		}
	}
}
