package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"pitchpipe/driver"
)

// Untuned is the name of a job without a stanza to change it by, so that it takes advice.
const Untuned = "untuned"

func adviceSentences() []sentence {
	return []sentence{
		{"a waiting job takes advice, once however often it is given, and its owner's numbers again", "hold, advice", adviceTaken},
		{"no advice gives a job more than its owner asked for", "hold, advice", adviceAbove},
		{"a running job loses no time by advice, and gets its owner's limit again", "hold, advice", adviceRunning},
	}
}

// takesAdvice reports whether the driver can act on advice.
func (h *Harness) takesAdvice() bool {
	d, ok := h.Driver.(driver.Adviser)
	return ok && !errors.Is(d.Advise(context.Background(), driver.Advice{Job: "0"}), driver.ErrUnsupported)
}

// advise fails the test where the driver answers otherwise.
func (h *Harness) advise(t *testing.T, a driver.Advice, want error) {
	t.Helper()
	d, _ := h.Driver.(driver.Adviser)
	if err := d.Advise(t.Context(), a); !errors.Is(err, want) {
		t.Fatalf("Advise(%+v): %v, want %v", a, err, want)
	}
}

func (h *Harness) queued(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	d, _ := h.Driver.(driver.Adviser)
	jobs, err := d.Queue(t.Context())
	if err != nil {
		t.Fatalf("Queue: %v", err)
	}
	for _, j := range jobs {
		if j.ID == id {
			return j
		}
	}
	t.Fatalf("Queue does not show job %s", id)
	return driver.Job{}
}

func (h *Harness) wantNumbers(t *testing.T, id driver.JobID, limit time.Duration, nice int) {
	t.Helper()
	if j := h.queued(t, id); j.Resources.TimeLimit != limit || j.Nice != nice {
		t.Errorf("it has a limit of %v and nice %d, want %v and %d", j.Resources.TimeLimit, j.Nice, limit, nice)
	}
}

func adviceTaken(t *testing.T, h *Harness) {
	job := h.startHeld(t, Behaviour{Name: Untuned, Epochs: 1, TimeLimit: time.Hour})
	h.wantNumbers(t, job.ID, time.Hour, 0)
	for range 2 {
		h.advise(t, driver.Advice{Job: job.ID, TimeLimit: 10 * time.Minute, Nice: 7}, nil)
		h.wantNumbers(t, job.ID, 10*time.Minute, 7)
	}
	h.advise(t, driver.Advice{Job: job.ID, TimeLimit: 5 * time.Minute}, nil)
	h.wantNumbers(t, job.ID, 5*time.Minute, 0)
	for range 2 {
		h.advise(t, driver.Advice{Job: job.ID}, nil)
		h.wantNumbers(t, job.ID, time.Hour, 0)
	}
}

func adviceAbove(t *testing.T, h *Harness) {
	job := h.startHeld(t, Behaviour{Name: Untuned, Epochs: 1, TimeLimit: time.Hour})
	h.advise(t, driver.Advice{Job: job.ID, TimeLimit: 2 * time.Hour}, driver.ErrDenied)
	h.advise(t, driver.Advice{Job: job.ID, Nice: -1}, driver.ErrInvalid)
	h.wantNumbers(t, job.ID, time.Hour, 0)
}

func adviceRunning(t *testing.T, h *Harness) {
	spec := h.Job(t, Behaviour{Name: Untuned, Epochs: long, Epoch: time.Second, TimeLimit: time.Hour})
	spec.NotBefore = h.Now().Add(5 * time.Second)
	job := h.startSpec(t, "request", spec)
	h.advise(t, driver.Advice{Job: job.ID, TimeLimit: 10 * time.Minute}, nil)
	h.Eventually(t, "the job runs", func(context.Context) bool { return h.queued(t, job.ID).State == driver.Running })
	h.advise(t, driver.Advice{Job: job.ID, TimeLimit: 5 * time.Minute}, driver.ErrConflict)
	h.wantNumbers(t, job.ID, 10*time.Minute, 0)
	h.advise(t, driver.Advice{Job: job.ID}, nil)
	h.wantNumbers(t, job.ID, time.Hour, 0)
}
