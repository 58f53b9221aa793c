package replay_test

import (
	"math"
	"testing"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/evaluate/replay"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// perMachine counts, for each machine, the tables and those that reach an aim.
func perMachine(rows []evaluate.Line, reaches func(evaluate.Line) bool) (reached, tables map[string]int) {
	reached, tables = map[string]int{}, map[string]int{}
	for _, r := range rows {
		tables[r.Text("machine")]++
		if reaches(r) {
			reached[r.Text("machine")]++
		}
	}
	return reached, tables
}

// allButOne wants an aim reached on all tables of each machine but one.
func allButOne(t *testing.T, aim string, rows []evaluate.Line, reaches func(evaluate.Line) bool) {
	t.Helper()
	reached, tables := perMachine(rows, reaches)
	if len(tables) == 0 {
		t.Errorf("%s: no tables", aim)
	}
	for machine, n := range tables {
		t.Logf("%s on %s: %d of %d", aim, machine, reached[machine], n)
		if reached[machine] < n-1 {
			t.Errorf("%s on %s: %d of %d tables, want all but one", aim, machine, reached[machine], n)
		}
	}
}

// aimed replays with two seeds, which show whether an aim is lost at a fifth of the
// time: `make bench-mind` measures all aims with ten.
func aimed(t *testing.T, in replay.TunerInput) evaluate.Report {
	t.Helper()
	in.Seeds = 2
	return runTuner(t, in)
}

func TestAsManyReturnsAsThePublishedTunerHadCostNoMoreEnergy(t *testing.T) {
	t.Parallel()
	rep := aimed(t, replay.TunerInput{Set: trialsIn(t, evaluatetest.Path(t, "zeus", "trials.csv")), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Blend, Weight: .5}}})
	allButOne(t, "joules of all runs at or below the reference", rep.Rows, func(r evaluate.Line) bool {
		return r.Figure("cumulative_energy_ratio") <= r.Figure("reference_cumulative_energy_ratio")
	})
	// What the controller does of that before a job starts, a whole run at a time: 5 of 12
	// at or below the reference, and 0.65 of the owner's cost on average, when this was
	// written, where the tuner that measures within a run has 0.64.
	reached, cost := 0, 0.0
	for _, r := range rep.Rows {
		cost += math.Log(float64(r.Figure("whole_cumulative_ratio"))) / float64(len(rep.Rows))
		if r.Figure("whole_cumulative_energy_ratio") <= r.Figure("reference_cumulative_energy_ratio") {
			reached++
		}
	}
	t.Logf("whole runs: %d of %d, %.3f of the owner's cost in the mean", reached, len(rep.Rows), math.Exp(cost))
	if reached < 4 || math.Exp(cost) > 0.69 {
		t.Errorf("whole runs: joules at or below the reference on %d tables, %.3f of the owner's cost in the mean", reached, math.Exp(cost))
	}
}

func TestEnergyUnderALimitOfTimeEndsNearTheOracle(t *testing.T) {
	t.Parallel()
	rep := aimed(t, replay.TunerInput{Set: trialsIn(t, evaluatetest.Path(t, "zeus", "trials.csv")), Goal: recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 1.1}})
	allButOne(t, "final settings within 1.03 of the oracle that keep the limit with every seed", rep.Rows, func(r evaluate.Line) bool {
		return r.Figure("limits_broken") == 0 && r.Figure("final_ratio") <= 1.03*r.Figure("oracle_ratio")
	})
	t.Logf("%.3f of the seeds", rep.Summary.Figure("within_1_03_of_oracle_share"))
	// What the controller does of that a whole run at a time: 9 of 12, and 1.02 of the
	// oracle on average, when this was written.
	reached, above := 0, 0.0
	for _, r := range rep.Rows {
		above += math.Log(float64(r.Figure("whole_final_ratio")/r.Figure("oracle_ratio"))) / float64(len(rep.Rows))
		if r.Figure("whole_final_ratio") <= 1.03*r.Figure("oracle_ratio") {
			reached++
		}
	}
	t.Logf("whole runs: %d of %d, %.3f of the oracle in the mean", reached, len(rep.Rows), math.Exp(above))
	if reached < 8 || math.Exp(above) > 1.03 {
		t.Errorf("whole runs: within 1.03 of the oracle on %d tables, %.3f of it in the mean", reached, math.Exp(above))
	}
}

func TestTenReturnsAreEnoughToBeNoWorseThanTheBestPowerLimit(t *testing.T) {
	t.Parallel()
	for _, goal := range []recurring.Goal{{Measure: tuning.Measure{Objective: tuning.Blend, Weight: .5}}, {Measure: tuning.Measure{Objective: tuning.Energy}}} {
		rep := aimed(t, replay.TunerInput{Set: trialsIn(t, evaluatetest.Path(t, "zeus", "trials.csv")), Goal: goal, Recurrences: 10})
		s := rep.Summary
		for _, r := range rep.Rows { // a whole run at a time; half of them try
			if r.Figure("whole_cumulative_ratio") > 1.1 || r.Figure("whole_final_ratio") > 1 {
				t.Errorf("%s: %s on %s: whole runs cost %g of the owner's, the final settings %g", goal.Objective, r.Text("workload"), r.Text("machine"), r.Figure("whole_cumulative_ratio"), r.Figure("whole_final_ratio"))
			}
		}
		if s.Figure("final_at_most_system_oracle") < s.Figure("tables")-2 {
			t.Errorf("%s: %v of %v tables, want all but two", goal.Objective, s.Figure("final_at_most_system_oracle"), s.Figure("tables"))
		}
		if s.Figure("worst_cumulative_ratio") > 1.1 || s.Figure("worst_final_ratio") > 1.1 {
			t.Errorf("%s: all runs cost up to %g of the owner's, the final settings %g", goal.Objective, s.Figure("worst_cumulative_ratio"), s.Figure("worst_final_ratio"))
		}
	}
}

func TestSixProbesFindTheFewestCoreSeconds(t *testing.T) {
	t.Parallel()
	rep := aimed(t, replay.TunerInput{
		Set: trialsIn(t, evaluatetest.Path(t, "multicores", "trials.csv")), Goal: recurring.Goal{Cores: true, MaxSlowdown: 1.05, MaxJoules: 1.02}, Probes: 6,
	})
	saved, oracle, broken := map[string]evaluate.Figure{}, map[string]evaluate.Figure{}, 0
	for _, r := range rep.Rows {
		saved[r.Text("machine")] += 1 - r.Figure("final_kept_ratio")
		oracle[r.Text("machine")] += 1 - r.Figure("oracle_ratio")
		if r.Figure("limits_broken") > 0 {
			broken++
		}
	}
	for _, machine := range []string{"xeon", "arm"} {
		t.Logf("%s: %.3f of %.3f", machine, saved[machine], oracle[machine])
		if !(saved[machine] >= .8*oracle[machine]) || oracle[machine] == 0 {
			t.Errorf("%s: saves %.3f in sum, the oracle %.3f", machine, saved[machine], oracle[machine])
		}
	}
	if broken > 1 {
		t.Errorf("limits are broken on %d tables", broken)
	}
}

func TestEightProbesFindTheFewestCoresOfFullSpeed(t *testing.T) {
	t.Parallel()
	s := aimed(t, replay.TunerInput{Set: trialsIn(t, evaluatetest.Path(t, "synergy", "trials.csv")), Goal: recurring.Goal{Cores: true, Attain: .98}, Probes: 8}).Summary
	if s["within_one_core_step"] == nil || s.Figure("within_one_core_step") != s.Figure("tables") || s.Figure("tables") == 0 {
		t.Errorf("%+v", s)
	}
}
