package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
)

func TestAJobThatBeginsJustBeforeItsChangeIsMovedLater(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.cut = func(command.Call, bool) error {
		if j := r.f.jobs[1]; j.state == "PENDING" {
			j.state, j.started = "RUNNING", time.Now().UTC().Truncate(time.Second)
		}
		return nil
	}
	in := intent(job, nil)
	for _, want := range []driver.StepKind{driver.StepChanged, driver.StepSuperseded} {
		if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != want {
			t.Errorf("%+v, %v; want %s", step, err, want)
		}
	}
	in = intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "saved"})
	in.ID = "another"
	if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepCheckpointing {
		t.Errorf("%+v, %v; want %s", step, err, driver.StepCheckpointing)
	}
}

func TestAJobThatLeavesJustBeforeItsRequeueIsMoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.stdout = filepath.Join(t.TempDir(), "out")
	job := r.start(t)
	r.f.run(job.ID)
	r.f.cut = func(c command.Call, after bool) error {
		switch {
		case c.Name == "scancel" && after:
			return os.WriteFile(r.f.stdout, []byte("saved\n"), 0o600)
		case strings.HasPrefix(c.String(), "scontrol requeue"):
			j := r.f.jobs[1]
			j.state, j.restarts, j.exit, j.held = "SPECIAL_EXIT", 1, 85, true
			return fmt.Errorf("it does not run: %w", driver.ErrConflict)
		}
		return nil
	}
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Exit: 85, Done: "saved"})
	for _, want := range []driver.StepKind{driver.StepCheckpointing, driver.StepCheckpointing, driver.StepStopped, driver.StepChanged, driver.StepStarted} {
		if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != want {
			t.Fatalf("%+v, %v; want %s", step, err, want)
		}
	}
	r.f.with(job.ID, func(j *fakeJob) {
		if j.state != "PENDING" || j.cores != 2 {
			t.Errorf("the job is %s with %d cores, want it to wait with 2", j.state, j.cores)
		}
	})
}

func TestAConflictThatStaysEndsWithTheGrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.run(job.ID)
	r.f.cut = func(command.Call, bool) error {
		return fmt.Errorf("squeue and scontrol differ: %w", driver.ErrConflict)
	}
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Nanosecond, Done: "saved"})
	if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepAbandoned {
		t.Errorf("%+v, %v; want %s", step, err, driver.StepAbandoned)
	}
}
