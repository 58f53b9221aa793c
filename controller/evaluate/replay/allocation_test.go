package replay_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/replay"
)

const few = `workload,machine,knob_cores,epochs,seconds
halves,here,1,100,1000
halves,here,2,100,500
halves,here,4,100,260
stays,here,1,50,300
stays,here,2,50,290
stays,here,4,50,285
blank,here,1,50,
`

func input(tables ...evaluate.Table) replay.AllocationInput {
	return replay.AllocationInput{Set: evaluate.Set{Trials: tables}, Units: 8, Jobs: 20, Loads: []float64{1}, Seeds: 4, Seed: 1, Restart: 2}
}

func run(t *testing.T, in replay.AllocationInput) (evaluate.Report, map[string]evaluate.Line) {
	t.Helper()
	r, err := replay.Allocation(t.Context(), in, evaluatetest.Quiet)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]evaluate.Line{}
	for _, row := range r.Rows {
		out[row.Text("policy")] = row
	}
	return r, out
}

func TestJobsThatScaleEndSoonerThanUnderTheOtherPolicies(t *testing.T) {
	r, rows := run(t, input(evaluatetest.Table(t, "few.csv", few, evaluate.Trials)))
	for _, name := range []string{"drf", "tetris", "optimus", "fcfs"} {
		if ours, its := rows["pitchpipe"].Figure("mean_jct"), rows[name].Figure("mean_jct"); ours >= its {
			t.Errorf("ours takes %.0f s, %s %.0f s", ours, name, its)
		}
	}
	if left := r.Summary.Lines("left_out"); len(left) != 2 || left[0]["workload"] != "blank" || left[1]["rows"] != nil {
		t.Errorf("left out: %v", left)
	}
	if n := rows["fcfs"].Figure("restarts"); n != 0 {
		t.Errorf("first come first served restarts %v times", n)
	}
	again, _ := run(t, input(evaluatetest.Table(t, "few.csv", few, evaluate.Trials)))
	if a, b := r.Text(), again.Text(); a != b {
		t.Errorf("the same seeds give another report:\n%s%s", a, b)
	}
}

func TestADearRestartIsMadeLessOften(t *testing.T) {
	in := input(evaluatetest.Table(t, "few.csv", few, evaluate.Trials))
	_, cheap := run(t, in)
	in.Restart = 200
	_, dear := run(t, in)
	if a, b := cheap["pitchpipe"].Figure("restarts"), dear["pitchpipe"].Figure("restarts"); b >= a {
		t.Errorf("%v restarts at 2 s each, %v at 200 s", a, b)
	}
}

func TestChoicesThatCannotBePlayedAreRefused(t *testing.T) {
	table := evaluatetest.Table(t, "few.csv", few, evaluate.Trials)
	for name, spoil := range map[string]func(*replay.AllocationInput){
		"no seeds":      func(in *replay.AllocationInput) { in.Seeds = 1 },
		"no cluster":    func(in *replay.AllocationInput) { in.Units = 0 },
		"no load":       func(in *replay.AllocationInput) { in.Loads = nil },
		"negative time": func(in *replay.AllocationInput) { in.Restart = -1 },
		"endless time":  func(in *replay.AllocationInput) { in.Restart = math.Inf(1) },
		"no workload":   func(in *replay.AllocationInput) { in.Units = 1 },
	} {
		in := input(table)
		spoil(&in)
		if _, err := replay.Allocation(t.Context(), in, evaluatetest.Quiet); !errors.Is(err, evaluate.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := input(table)
	in.Restart = 1e300
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := replay.Allocation(ctx, in, evaluatetest.Quiet); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a play that does not end: %v", err)
	}
}

// The seeds are others than those that the command judges by.
func TestOnRecordedJobsOursIsBelowTheOthers(t *testing.T) {
	in := input(evaluatetest.Recorded(t, evaluate.Trials, "adaptdl/trials_to_target.csv")...)
	in.Units, in.Jobs, in.Restart, in.Seed, in.Seeds = 64, 40, 30, 1001, 6
	r, rows := run(t, in)
	for _, name := range []string{"drf", "tetris", "optimus"} {
		if rows[name].Figure("ours_over_high") >= 1 {
			t.Errorf("%s:\n%s", name, r.Text())
		}
	}
}
