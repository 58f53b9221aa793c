package replay_test

import (
	"testing"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// Twenty returns of jobs that cannot be moved; six may try a setting. The bars are
// below what was reached when they were written: 0.86 of the saving, and 1.05.
func TestSixTriesInTwentyReturnsFindMostOfTheSaving(t *testing.T) {
	t.Parallel()
	rep := runTuner(t, replay.TunerInput{
		Set: trialsIn(t, evaluatetest.Path(t, "zeus", "trials.csv")), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}}, Recurrences: 20, Probes: 6, Seeds: 4,
	})
	saved, oracle, worst := evaluate.Figure(0), evaluate.Figure(0), evaluate.Figure(0)
	for _, r := range rep.Rows {
		saved += 1 - r.Figure("whole_final_ratio")
		oracle += 1 - r.Figure("oracle_ratio")
		worst = max(worst, r.Figure("whole_cumulative_ratio"))
		if r.Figure("whole_tried") > 6 {
			t.Errorf("%s on %s: %g tries", r.Text("workload"), r.Text("machine"), r.Figure("whole_tried"))
		}
		if r.Figure("whole_final_ratio") > 1 {
			t.Errorf("%s on %s ends at %g of the owner's", r.Text("workload"), r.Text("machine"), r.Figure("whole_final_ratio"))
		}
	}
	t.Logf("saved %.3f of %.3f, worst total %.3f", saved, oracle, worst)
	if saved < .75*oracle || worst > 1.1 || oracle == 0 {
		t.Errorf("saved %.3f of %.3f, the returns cost up to %.3f of the owner's", saved, oracle, worst)
	}
}

func TestALimitOfTimeHoldsForWholeRunsToo(t *testing.T) {
	t.Parallel()
	rep := runTuner(t, replay.TunerInput{
		Set:  trialsIn(t, evaluatetest.Path(t, "multicores", "trials.csv")),
		Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 1.1}, Recurrences: 20, Probes: 6, Seeds: 4,
	})
	for _, r := range rep.Rows {
		if r.Figure("whole_limits_broken") > 0 || r.Figure("whole_cumulative_ratio") > 1.1 {
			t.Errorf("%s on %s: limits broken by %g of the seeds, all runs cost %g", r.Text("workload"), r.Text("machine"), r.Figure("whole_limits_broken"), r.Figure("whole_cumulative_ratio"))
		}
	}
}
