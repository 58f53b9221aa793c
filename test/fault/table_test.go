package fault_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/test/fault"
)

func TestTheTableCountsAJobInTheRowOfEachFaultThatTouchedIt(t *testing.T) {
	t.Parallel()
	verdicts := map[string]fault.Verdict{
		"1": {Counts: []bool{true, false}, Took: 9 * time.Second}, "2": {Counts: []bool{false, true}, Took: 5 * time.Second}, "3": {Counts: []bool{true, false}},
	}
	strikes := []fault.Strike{
		{Fault: fault.Fault{Kind: "a", Point: "here"}, Round: 1, Touched: []string{"1", "2"}},
		{Fault: fault.Fault{Kind: "a"}, Round: 2, Touched: []string{"1"}},
		{Fault: fault.Fault{Kind: "b"}, Round: 3, Touched: []string{"2", "9"}},
	}
	side := fault.Side{Strikes: strikes, Verdicts: verdicts}
	got := fault.Table(side, []string{"once", "lost"}, "longest")
	for _, want := range [][]string{{"a", "2", "2", "3", "2", "1", "9.0s"}, {"b", "1", "1", "1", "0", "1", "5.0s"}, {"points:", "here", "1"}} {
		if !slices.ContainsFunc(strings.Split(got, "\n"), func(l string) bool { return slices.Equal(strings.Fields(l), want) }) {
			t.Errorf("no row %q in\n%s", want, got)
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(got), " "), "every job counted once 3 3 3 2 1 9.0s") {
		t.Errorf("the last row is another:\n%s", got)
	}
	got = fault.Beside(side, fault.Side{Strikes: strikes[2:], Verdicts: verdicts}, [2]string{"with", "without"}, []string{"once", "lost"}, "longest")
	for _, want := range []string{"b, with 1 1 1 0 1 5.0s b, without 1 1 1 0 1 5.0s", "once, with 3 3 3 2 1 9.0s", "once, without 1 1 3 2 1 9.0s"} {
		if text := strings.Join(strings.Fields(got), " "); !strings.Contains(text, want) || strings.Contains(text, "a, with") {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
