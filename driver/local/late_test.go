package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/local"
	"pitchpipe/driver/local/supervise"
)

// saysSaved starts a job that says saved and works on, and lets it be asked to save.
func (b *bench) saysSaved(t *testing.T, grace time.Duration) (driver.Job, driver.Intent) {
	t.Helper()
	job := b.start(t, "request", b.job(t, drivertest.Behaviour{Epochs: 80, Epoch: 200 * time.Millisecond, Saves: true, SaysSaved: true}))
	job = b.until(t, "it runs", job.ID, func(j driver.Job) bool { return strings.Contains(output(t, b.d, j.ID), "epoch 2/") })
	in := driver.Intent{
		ID: "intent", Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint,
		Change:     driver.Change{TimeLimit: time.Hour},
		Checkpoint: &driver.Checkpoint{Signal: "SIGUSR1", Grace: grace, Done: "^saved$"},
	}
	if step, err := b.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepCheckpointing {
		t.Fatalf("first step: %+v, %v", step, err)
	}
	return b.until(t, "it saved", job.ID, func(j driver.Job) bool { return strings.Contains(output(t, b.d, j.ID), "saved\n") }), in
}

func (b *bench) wantAbandoned(t *testing.T, in driver.Intent) {
	t.Helper()
	if step, err := b.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepAbandoned {
		t.Fatalf("step %+v, %v, want %s", step, err, driver.StepAbandoned)
	}
	if job := b.ended(t, in.Job, driver.Succeeded); len(job.Attempts) != 1 {
		t.Errorf("%d attempts, want the first to go on", len(job.Attempts))
	}
}

func TestAJobThatSaidSavedLongAgoIsNotStopped(t *testing.T) {
	t.Parallel()
	const grace = 4 * time.Second
	t.Run("it was not advanced until the grace was over", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, nil)
		_, in := b.saysSaved(t, grace)
		time.Sleep(grace)
		b.wantAbandoned(t, in)
	})
	t.Run("its end could not be asked for within the grace", func(t *testing.T) {
		t.Parallel()
		var block func()
		b := newBench(t, func(c *local.Config) {
			c.AfterStep = func(step string) {
				if step == "stopping" {
					block()
				}
			}
		})
		job, in := b.saysSaved(t, grace)
		path := b.attemptFile(job, supervise.StopFile)
		block = func() { // by a directory, no file can be written
			if err := os.MkdirAll(filepath.Join(path, "full"), 0o700); err != nil {
				t.Error(err)
			}
		}
		if step, err := b.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrTransient) {
			t.Fatalf("step %+v, %v, want %v", step, err, driver.ErrTransient)
		}
		b.shut(t)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(grace)
		b.open(t)
		b.wantAbandoned(t, in)
	})
}
