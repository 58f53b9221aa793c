package plan_test

import (
	"testing"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// promised is the share of the rest that the next setting is said to save.
func promised(t *testing.T, s tuning.State) float64 {
	t.Helper()
	d := plan.Decide(s)
	for _, e := range d.Evidence {
		if e.Name == "expected_saving_share" {
			return e.Value
		}
	}
	t.Fatalf("%s %s says nothing of what is expected: %v", d.Action, d.Reason, d.Evidence)
	return 0
}

func TestWhatIsExpectedOfASettingThatNobodyMeasured(t *testing.T) {
	t.Parallel()
	batch := func(n float64) tuning.Settings { return cores(1).With("batch_size", tuning.Number(n)) }
	for _, c := range []struct {
		name      string
		objective tuning.Objective
		own, next tuning.Settings
		lost      int // settings that were tried and saved nothing
		want      float64
	}{
		{"half of what more cores take over, where time counts", tuning.Time, cores(1), cores(2), 0, 0.25},
		{"what the site expects, where joules count", tuning.Energy, cores(1), cores(2), 0, 0.04},
		{"as much as either has, where both count", tuning.EDP, cores(1), cores(2), 0, 0.145},
		{"next to nothing of fewer cores, where time counts", tuning.Time, cores(2), cores(1), 0, 0.008},
		{"what the site expects of fewer cores, where joules count", tuning.Energy, cores(2), cores(1), 0, 0.04},
		{"half of everything from a hyperparameter, which nobody can tell", tuning.Energy, batch(8), batch(64), 0, 0.5},
		{"less after a disappointment", tuning.Time, cores(1), cores(2), 2, 0.125},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := running()
			s.Site.ExpectedSaving = 0.04
			s.Policy.Objective = c.objective
			s.EpochsTotal, s.Policy.Budget.Probes = 100000, 9
			s.Own, s.Current, s.Next = c.own, c.own, c.next
			joules := tuning.Joules(1)
			own := tuning.Trial{Settings: c.own, Epochs: 3, Seconds: 1, Joules: &joules, Source: "rapl", Reference: true}
			s.Trials, s.JoulesSource = []tuning.Trial{own}, "rapl"
			for i := range c.lost {
				lost := own
				lost.Settings, lost.Reference = batch(float64(16+i)), false
				s.Trials = append(s.Trials, lost)
				s.Probes++
			}
			if got := promised(t, s); got < c.want-1e-9 || got > c.want+1e-9 {
				t.Errorf("%g, want %g", got, c.want)
			}
		})
	}
}

func TestAShortJobIsNotProbedForLittle(t *testing.T) {
	t.Parallel()
	s := running()
	s.Own, s.Current, s.Next = cores(2), cores(2), cores(1)
	s.Trials[0].Settings = cores(2)
	s.Policy.Objective = tuning.Time
	s.EpochsTotal = 400
	if d := plan.Decide(s); d.Action != tuning.Probe {
		t.Fatalf("%s %s where much is expected, want a probe", d.Action, d.Reason)
	}
	s.Site.ExpectedSaving = tuning.DefaultSite().ExpectedSaving
	if d := plan.Decide(s); d.Action != tuning.Hold || d.Reason != tuning.ReasonTooShort {
		t.Errorf("%s %s where fewer cores are expected to save next to nothing of the time, want hold too-short", d.Action, d.Reason)
	}
}
