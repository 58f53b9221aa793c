package reconcile_test

import (
	"slices"
	"testing"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

func TestAJobThatItsLimitEndsUnderTunedSettingsIsARegression(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, behaviour string
		worse           bool
	}{
		{"the setting was slower", "parallel=1", true},
		{"the setting was no slower, so the limit was too short anyway", "parallel=0", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.decide = func(s tuning.State) tuning.Decision {
					switch {
					case s.Measured != tuning.ReasonNone:
						return hold(tuning.ReasonProfiling)
					case s.Restarts == 0:
						return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonClassKnown, Settings: cores(1)}
					}
					return hold(tuning.ReasonAlreadyBest)
				}
				if !tc.worse {
					w.epoch = func(e *tuning.Epoch) { // one core is a little faster here
						if e.Settings.Equal(cores(1)) {
							e.Start = e.Start.Add(e.End.Sub(e.Start) / 10)
						}
					}
				}
				rec, job := w.end(t, w.mustSubmit(t, "train", "epochs=40 seconds=4 checkpoint=500ms "+tc.behaviour+"\n#SBATCH --time=1"))
				if job.State != driver.TimeExceeded || len(job.Attempts) != 2 {
					t.Fatalf("%s after %d attempts, want time-exceeded after 2", job.State, len(job.Attempts))
				}
				worse := rec.Outcome != nil && rec.Outcome.Verdict == tuning.Regressed && rec.Outcome.Reason == tuning.ReasonKilled
				if worse != tc.worse {
					t.Errorf("outcome %+v; a regression: %t, want %t", rec.Outcome, worse, tc.worse)
				}
				if got := slices.ContainsFunc(w.lessons[0].Regressed, cores(1).Equal); got != tc.worse {
					t.Errorf("one core is remembered as worse: %t, want %t", got, tc.worse)
				}
			})
		})
	}
}
