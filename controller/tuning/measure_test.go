package tuning_test

import (
	"math"
	"testing"

	"pitchpipe/controller/tuning"
)

// measured is a trial; 0 joules were not measured.
func measured(seconds, joules float64) tuning.Trial {
	t := tuning.Trial{Settings: tuning.Settings{}, Epochs: 3, Seconds: seconds, Source: "rapl"}
	if joules > 0 {
		t.Joules = new(tuning.Joules(joules))
	}
	return t
}

func TestLogRatio(t *testing.T) {
	t.Parallel()
	ref := measured(10, 100)
	half := measured(5, 80)
	bare := measured(5, 0)
	failed := half
	failed.Failed = true
	otherSource := half
	otherSource.Source = "modelled"
	tests := []struct {
		name      string
		trial     tuning.Trial
		objective tuning.Objective
		weight    float64
		want      float64
		ok        bool
	}{
		{"time is the log ratio of seconds", half, tuning.Time, 0, math.Log(.5), true},
		{"energy is the log ratio of joules", half, tuning.Energy, 0, math.Log(.8), true},
		{"edp is the sum of both", half, tuning.EDP, 0, math.Log(.4), true},
		{"blend weighs both", half, tuning.Blend, .25, .25*math.Log(.8) + .75*math.Log(.5), true},
		{"time needs no joules", bare, tuning.Time, 0, math.Log(.5), true},
		{"blend without energy needs no joules", bare, tuning.Blend, 0, math.Log(.5), true},
		{"energy without joules has no ratio", bare, tuning.Energy, 0, 0, false},
		{"joules of another source have no score", otherSource, tuning.Energy, 0, 0, false},
		{"a failed trial has no ratio", failed, tuning.Time, 0, 0, false},
		{"a trial without time has no ratio", tuning.Trial{}, tuning.Time, 0, 0, false},
	}
	for _, tt := range tests {
		got, ok := tt.trial.LogRatio(ref, tuning.Measure{Objective: tt.objective, Weight: tt.weight})
		if ok != tt.ok || math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("%s: LogRatio = %g, %t, want %g, %t", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func TestATrialIsMeasuredByWhatItsSearchTakesLonger(t *testing.T) {
	t.Parallel()
	share := func(cores, trials, serial float64) *tuning.Search {
		return &tuning.Search{Share: tuning.Share{Cores: cores, Trials: trials, Serial: serial}}
	}
	tests := []struct {
		name      string
		search    *tuning.Search
		objective tuning.Objective
		want      float64 // of 2 cores, where an epoch takes 1.5 s, to 8 cores, where it takes 1 s
	}{
		{"a job alone counts its seconds", nil, tuning.Time, 1.5},
		{"a trial whose search has all the cores that it wants too", share(0, 0, .1), tuning.Time, 1.5},
		{"a fourth of the cores serves four times the trials", share(16, 8, 0), tuning.Time, 1.5 / 4},
		{"no more trials run than there are", share(16, 4, 0), tuning.Time, 1.5 / 2},
		{"what the longest trial still trains is not shared", share(16, 8, .2), tuning.Time, 1.5 * .2 / .5},
		{"the last trial counts its seconds", share(16, 1, 1), tuning.Time, 1.5},
		{"another objective stays", share(16, 8, .2), tuning.Cost, 1.5 / 4},
	}
	for _, tt := range tests {
		m := tuning.Policy{Objective: tt.objective, TrialOf: tt.search}.Measure()
		at := func(cores, seconds float64) tuning.Trial {
			return tuning.Trial{Settings: tuning.Settings{tuning.Cores: tuning.Number(cores)}, Seconds: seconds}
		}
		got, ok := at(2, 1.5).LogRatio(at(8, 1), m)
		if !ok || math.Abs(got-math.Log(tt.want)) > 1e-12 {
			t.Errorf("%s: LogRatio = %g, %t, want %g", tt.name, got, ok, math.Log(tt.want))
		}
		if want := tt.search != nil && tt.search.Share.Cores > 0 && tt.objective == tuning.Time; want != (m.Objective == tuning.SearchTime) {
			t.Errorf("%s: measured by %s", tt.name, m.Objective)
		}
	}
}
