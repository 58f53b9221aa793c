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
