package drivertest

import (
	"context"
	"errors"
	"testing"

	"pitchpipe/driver"
)

func roomSentences() []sentence {
	return []sentence{
		{"a move to more cores than there is room for now is refused before anything is done", "room", noRoomForCores},
		{"of two that would grow into the same room one is moved, and the other one when there is room again", "room", rivals},
	}
}

// grower starts a job that runs until it is stopped, and waits until it runs.
func (h *Harness) grower(t *testing.T, id driver.RequestID, cores int, memory int64) driver.Job {
	t.Helper()
	b := mover(10_000)
	b.Name, b.Cores, b.MemoryBytes = string(id), cores, memory
	job := h.startSpec(t, id, h.Job(t, b))
	h.epochs(t, job.ID, 1)
	return h.get(t, job.ID)
}

// refused fails the test unless there is no room for an intent, and its job runs on as it was.
func (h *Harness) refused(t *testing.T, in driver.Intent) {
	t.Helper()
	for range 2 {
		_, err := h.Driver.Advance(t.Context(), in)
		wantError(t, "Advance to more than there is room for", err, driver.ErrNoRoom)
	}
	h.another(t, in.Job)
	if job := h.get(t, in.Job); job.State != driver.Running || job.Attempt != in.Attempt || !job.Change.Empty() {
		t.Errorf("%s in attempt %d with %+v, want it to run on as it was", job.State, job.Attempt, job.Change)
	}
}

// grows waits until there is room for an intent, and carries it out.
func (h *Harness) grows(t *testing.T, in driver.Intent) {
	t.Helper()
	h.Eventually(t, "there is room", func(ctx context.Context) bool {
		_, err := h.Driver.Advance(ctx, in)
		if err != nil && !errors.Is(err, driver.ErrNoRoom) {
			t.Fatalf("Advance: %v", err)
		}
		return err == nil
	})
	wantStep(t, h.drive(t, in, 1), driver.StepStarted)
	if got := h.inAttempt(t, in.Job, in.Attempt+1).Change; got.Cores != in.Change.Cores || got.MemoryBytes != in.Change.MemoryBytes {
		t.Errorf("it runs with %+v, want %+v", got, in.Change)
	}
}

func (h *Harness) gone(t *testing.T, id driver.JobID) {
	t.Helper()
	h.stop(t, id)
	h.ended(t, id)
}

func noRoomForCores(t *testing.T, h *Harness) {
	job := h.grower(t, "grows", 1, 0)
	other := h.grower(t, "other", h.Cores-1, 0)
	in := h.intent(job, "intent", driver.Change{Cores: 2})
	wantError(t, "Check", h.Driver.Check(t.Context(), in), driver.ErrNoRoom)
	h.refused(t, in)
	h.gone(t, other.ID)
	h.grows(t, in)
	h.gone(t, job.ID)
}

func rivals(t *testing.T, h *Harness) {
	part := h.MemoryBytes / 8 / mebibyte * mebibyte
	one, two := h.grower(t, "one", 0, 2*part), h.grower(t, "two", 0, 2*part)
	first, second := h.intent(one, "first", driver.Change{MemoryBytes: 5 * part}), h.intent(two, "second", driver.Change{MemoryBytes: 5 * part})
	wantStep(t, h.advance(t, first), driver.StepCheckpointing)
	h.refused(t, second)
	h.grows(t, first)
	h.refused(t, second)
	h.gone(t, one.ID)
	h.grows(t, second)
	h.gone(t, two.ID)
}
