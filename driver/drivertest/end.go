package drivertest

import (
	"testing"
	"time"

	"pitchpipe/driver"
)

func endSentences() []sentence {
	return []sentence{
		{"a job that ends well has succeeded", "", succeeds},
		{"a job with another exit status has failed with that status", "", ends(Behaviour{Epochs: 1, ExitCode: 7}, driver.Failed)},
		{"a job whose command is missing was not started", "", ends(Behaviour{Epochs: 1, MissingCommand: true}, driver.NotStarted)},
		// No longer than a minute: some schedulers count in minutes.
		{"a job over its time limit is time-exceeded", "", ends(Behaviour{Epochs: 10_000, Epoch: 50 * time.Millisecond, TimeLimit: time.Second}, driver.TimeExceeded)},
		{"a job over its memory limit is memory-exceeded", "memory", ends(hungry(), driver.MemoryExceeded)},
		{"a running job that is stopped is cancelled, and stopping it again does nothing", "", stopRunning},
		{"a pending job that is stopped is cancelled and never runs", "hold", stopPending},
		{"stopping a job that ended does nothing", "", stopEnded},
	}
}

func succeeds(t *testing.T, h *Harness) {
	job := h.succeeded(t, h.start(t, Behaviour{Name: "well", Epochs: 3, Epoch: 30 * time.Millisecond}).ID)
	if job.Name != "well" || job.Attempt != 1 || job.ExitCode != 0 || len(job.Attempts) != 1 {
		t.Errorf("name %q, attempt %d of %d, exit code %d; want well, 1 of 1, 0",
			job.Name, job.Attempt, len(job.Attempts), job.ExitCode)
	}
	if job.Submitted.IsZero() || job.Started.Before(job.Submitted) || job.Ended.Before(job.Started) {
		t.Errorf("submitted %v, started %v, ended %v: not in order", job.Submitted, job.Started, job.Ended)
	}
	if a := job.Attempts[0]; a.Number != 1 || a.ExitCode != 0 || a.Cause != driver.CauseSubmitted || a.Ended.IsZero() {
		t.Errorf("attempt %+v, want number 1, exit code 0, cause %s and an end", a, driver.CauseSubmitted)
	}
	h.eachEpochOnce(t, job.ID, 3)
}

// ends is a job that is started and ends so by itself.
func ends(b Behaviour, want driver.State) func(*testing.T, *Harness) {
	return func(t *testing.T, h *Harness) {
		if want == driver.NotStarted && h.Blind {
			want = driver.Failed
		}
		job := h.ended(t, h.start(t, b).ID)
		wantState(t, job, want)
		if b.ExitCode != 0 && job.ExitCode != b.ExitCode {
			t.Errorf("exit code %d, want %d", job.ExitCode, b.ExitCode)
		}
	}
}

func stopRunning(t *testing.T, h *Harness) {
	job := h.runs(t, Behaviour{Epochs: 10_000, Epoch: 50 * time.Millisecond}, 1)
	for range 2 {
		h.stop(t, job.ID)
	}
	wantState(t, h.ended(t, job.ID), driver.Cancelled)
	h.stop(t, job.ID)
	wantState(t, h.get(t, job.ID), driver.Cancelled)
}

func stopPending(t *testing.T, h *Harness) {
	spec := h.Job(t, Behaviour{Epochs: 1, Epoch: 20 * time.Millisecond})
	spec.NotBefore = h.Now().Add(8 * time.Second)
	job := h.startSpec(t, "request", spec)
	h.stop(t, job.ID)
	wantState(t, h.ended(t, job.ID), driver.Cancelled)
	h.Sleep(t.Context(), spec.NotBefore.Sub(h.Now())+500*time.Millisecond)
	job = h.get(t, job.ID)
	wantState(t, job, driver.Cancelled)
	if job.Attempt != 0 || !job.Started.IsZero() {
		t.Errorf("attempt %d, started %v: it ran", job.Attempt, job.Started)
	}
}

func stopEnded(t *testing.T, h *Harness) {
	job := h.ended(t, h.start(t, Behaviour{Epochs: 1}).ID)
	h.stop(t, job.ID)
	wantState(t, h.get(t, job.ID), driver.Succeeded)
}
