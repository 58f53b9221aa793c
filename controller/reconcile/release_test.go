package reconcile_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/test/sim"
)

func TestAJobThatWaitsForTheTunerAloneBeginsOnceTheTunerHolds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d    tuning.Decision
		want time.Duration // until it begins; the hold ends after a second
	}{
		"nothing is changed": {tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonNoSamples}, 0},
		"it is changed":      {tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonRecalled, Settings: cores(2)}, 201 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, err := newWorld(t.Context(), sim.Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer w.cluster.Close()
				w.release = w.cluster.Release
				w.decide = func(tuning.State) tuning.Decision { return c.d }
				w.restart()
				job, err := w.submit("train", "epochs=3 seconds=1")
				for err == nil && job.Attempt == 0 {
					if err = w.look(job.ID); err == nil {
						job, err = w.cluster.Get(t.Context(), job.ID)
					}
				}
				if err != nil || job.Started.Sub(job.Submitted) != c.want {
					t.Errorf("it began after %v (%v), want %v", job.Started.Sub(job.Submitted), err, c.want)
				}
			})
		})
	}
}
