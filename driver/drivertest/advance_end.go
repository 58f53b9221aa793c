package drivertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
)

// abandons is a job that does not save within the grace.
func (h *Harness) abandons(t *testing.T, b Behaviour, grace time.Duration) driver.JobID {
	t.Helper()
	in := h.intent(h.runs(t, b, 1), "intent", driver.Change{TimeLimit: time.Hour})
	in.Checkpoint.Grace = grace
	wantStep(t, h.advance(t, in), driver.StepCheckpointing)
	wantStep(t, h.drive(t, in, 1), driver.StepAbandoned)
	wantStep(t, h.advance(t, in), driver.StepAbandoned)
	return in.Job
}

func ignoresSignal(t *testing.T, h *Harness) {
	h.untouched(t, h.abandons(t, Behaviour{Epochs: long, Epoch: epoch, IgnoreSignal: true}, 300*time.Millisecond), long)
}

func savesLate(t *testing.T, h *Harness) {
	id := h.abandons(t, Behaviour{Epochs: 3, Epoch: 3 * time.Second, Saves: true}, 100*time.Millisecond)
	job := h.succeeded(t, id)
	if job.Change.TimeLimit != 0 {
		t.Errorf("change %+v, want the old settings", job.Change)
	}
	h.eachEpochOnce(t, id, 3)
}

func leavesOtherwise(t *testing.T, h *Harness) {
	b := mover(10_000)
	b.LeavesWith = 3
	in := h.intent(h.runs(t, b, 1), "intent", driver.Change{TimeLimit: time.Hour})
	wantStep(t, h.drive(t, in, 1), driver.StepFinished)
	job := h.get(t, in.Job)
	wantState(t, job, driver.Failed)
	if job.ExitCode != 3 || len(job.Attempts) != 1 {
		t.Errorf("exit code %d after %d attempts, want 3 after 1", job.ExitCode, len(job.Attempts))
	}
}

// says is a job that runs and says that it saved, and an intent that listens for that.
func (h *Harness) says(t *testing.T) driver.Intent {
	t.Helper()
	b := mover(longer)
	b.SaysSaved = true
	in := h.intent(h.runs(t, b, 2), "intent", driver.Change{TimeLimit: time.Hour})
	in.Checkpoint.Exit, in.Checkpoint.Done = 0, "^saved$"
	return in
}

func saysSaved(t *testing.T, h *Harness) {
	in := h.says(t)
	wantStep(t, h.drive(t, in, 1), driver.StepStarted)
	wantAttempts(t, h.succeeded(t, in.Job), 2)
	// What ran between saving and being stopped is done again.
	h.eachEpoch(t, in.Job, longer)
}

func changeEnv(t *testing.T, h *Harness) {
	const name = "CONFORMANCE"
	b := mover(long)
	b.ShowEnv = name
	shows := func(id driver.JobID, value string) {
		t.Helper()
		if output := h.logs(t, id, 0); !strings.Contains(output, "env "+name+"="+value+"\n") {
			t.Errorf("no attempt has %s=%s; the output:\n%s", name, value, output)
		}
	}
	spec := h.Job(t, b)
	spec.Env = map[string]string{name: "owner"}
	job := h.startSpec(t, "request", spec)
	h.epochs(t, job.ID, 2)
	job = h.get(t, job.ID)
	shows(job.ID, "owner")
	in := h.applied(t, job, "intent", driver.Change{TimeLimit: time.Hour, Env: map[string]string{name: "tuned"}})
	h.movedOnce(t, job, in, long)
	shows(job.ID, "tuned")
}

func memoryReturn(t *testing.T, h *Harness) {
	b := mover(3)
	b.MemoryBytes, b.UseMemory = 512*mebibyte, 300*mebibyte
	job := h.startChanged(t, b, driver.Change{MemoryBytes: 128 * mebibyte, TimeLimit: time.Hour})
	job = h.succeeded(t, job.ID)
	wantAttempts(t, job, 2)
	a := job.Attempts[1]
	if a.Cause != driver.CauseMemory || a.Change.MemoryBytes != 0 || a.Change.TimeLimit != time.Hour || a.Intent != "" {
		t.Errorf("second attempt %+v, want cause %s, no changed memory, the rest of the change kept, no intent", a, driver.CauseMemory)
	}
	h.eachEpoch(t, job.ID, 3) // the first attempt was not asked to save
}

func dryRun(t *testing.T, h *Harness) {
	job := h.runs(t, mover(long), 1)
	in := h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})
	wantError(t, "Check of a change that would do", h.Driver.Check(t.Context(), in), nil)
	in.Checkpoint = nil
	wantError(t, "Check without a checkpoint", h.Driver.Check(t.Context(), in), driver.ErrUnsupported)
	in.Job = "unknown"
	wantError(t, "Check of an unknown job", h.Driver.Check(t.Context(), in), driver.ErrNotFound)
	h.untouched(t, job.ID, long)
}

// reopened waits until the driver that was opened again knows how the job ended.
func (h *Harness) reopened(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	var job driver.Job
	h.Eventually(t, "the new driver sees the end of "+string(id), func(ctx context.Context) bool {
		var err error
		job, err = h.Driver.Get(ctx, id)
		return err == nil && job.State.Ended()
	})
	return job
}
