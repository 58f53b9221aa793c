package drivertest

import (
	"slices"
	"testing"
	"time"

	"pitchpipe/driver"
)

func startSentences() []sentence {
	return []sentence{
		{"a repeated start returns the same job and creates no second", "", repeatedStart},
		{"another request for the same file is another job", "", secondRequest},
		{"a job that cannot be read is invalid and leaves nothing behind", "", unreadable},
		{"a job larger than the machine is invalid and leaves nothing behind", "size", tooLarge},
		{"a held job waits and starts by itself when its time has come", "hold", notBefore},
		{"a held job begins once it is released, as its owner wrote it", "hold", released},
		{"two jobs that do not fit next to each other run one after the other", "size", oneAfterTheOther},
		{"the memory that a job asks for is what it gets", "memory", enoughMemory},
	}
}

func repeatedStart(t *testing.T, h *Harness) {
	spec := h.Job(t, Behaviour{Epochs: 2, Epoch: 50 * time.Millisecond})
	first := h.startSpec(t, "request", spec)
	if again := h.startSpec(t, "request", spec); again.ID != first.ID {
		t.Errorf("repeated while it runs: job %s, want %s", again.ID, first.ID)
	}
	h.ended(t, first.ID)
	again := h.startSpec(t, "request", spec)
	if again.ID != first.ID || again.State != driver.Succeeded {
		t.Errorf("repeated after its end: job %s %s, want %s %s", again.ID, again.State, first.ID, driver.Succeeded)
	}
	h.wantJobs(t, first.ID)
	h.eachEpochOnce(t, first.ID, 2)
}

func secondRequest(t *testing.T, h *Harness) {
	spec := h.Job(t, Behaviour{Epochs: 1, Epoch: 20 * time.Millisecond})
	a := h.startSpec(t, "request-a", spec)
	b := h.startSpec(t, "request-b", spec)
	if a.ID == b.ID {
		t.Fatalf("both requests are job %s", a.ID)
	}
	if a.Fingerprint != b.Fingerprint {
		t.Errorf("fingerprints of one file differ: %s and %s", a.Fingerprint, b.Fingerprint)
	}
	h.wantJobs(t, a.ID, b.ID)
	h.succeeded(t, a.ID)
	h.succeeded(t, b.ID)
}

func unreadable(t *testing.T, h *Harness) {
	spec := h.Job(t, Behaviour{Epochs: 1})
	spec.Source = []byte("\x00 {{{ no job\n")
	_, err := h.Driver.Start(t.Context(), "request", spec)
	wantError(t, "Start of an unreadable file", err, driver.ErrInvalid)
	h.wantJobs(t)
	// The request was not used up: a corrected file may be sent under it.
	h.succeeded(t, h.start(t, Behaviour{Epochs: 1}).ID)
}

func tooLarge(t *testing.T, h *Harness) {
	_, err := h.Driver.Start(t.Context(), "request", h.Job(t, Behaviour{Epochs: 1, Cores: h.Cores + 1}))
	wantError(t, "Start with too many cores", err, driver.ErrInvalid)
	if h.MemoryBytes > 0 {
		_, err = h.Driver.Start(t.Context(), "request", h.Job(t, Behaviour{Epochs: 1, MemoryBytes: 2 * h.MemoryBytes}))
		wantError(t, "Start with too much memory", err, driver.ErrInvalid)
	}
	h.wantJobs(t)
}

func notBefore(t *testing.T, h *Harness) {
	spec := h.Job(t, Behaviour{Epochs: 1, Epoch: 20 * time.Millisecond})
	spec.NotBefore = h.Now().Add(3 * time.Second)
	job := h.startSpec(t, "request", spec)
	wantState(t, job, driver.Pending)
	job = h.succeeded(t, job.ID)
	if job.Started.Before(spec.NotBefore.Truncate(time.Millisecond)) {
		t.Errorf("started %v before its time", spec.NotBefore.Sub(job.Started))
	}
}

func released(t *testing.T, h *Harness) {
	job := h.startHeld(t, Behaviour{Epochs: 1, Epoch: 20 * time.Millisecond})
	if wait := h.get(t, job.ID).NotBefore.Sub(h.Now()); wait < 50*time.Minute {
		t.Errorf("it says that it waits for %v, want an hour", wait)
	}
	free := h.Driver.(driver.Releaser)
	for range 2 { // repeated it does nothing
		if err := free.Release(t.Context(), job.ID); err != nil {
			t.Fatalf("Release: %v", err)
		}
	}
	job = h.succeeded(t, job.ID)
	if !job.NotBefore.IsZero() || job.Attempts[0].Cause != driver.CauseSubmitted || job.Attempts[0].Intent != "" {
		t.Errorf("released it is %+v, want a job that its owner submitted", job)
	}
}

func oneAfterTheOther(t *testing.T, h *Harness) {
	first := h.startSpec(t, "request-a", h.Job(t, Behaviour{Epochs: long, Epoch: epoch, Cores: h.Cores}))
	h.epochs(t, first.ID, 1)
	second := h.startSpec(t, "request-b", h.Job(t, Behaviour{Epochs: 1, Epoch: epoch, Cores: h.Cores}))
	wantState(t, second, driver.Pending)
	first, second = h.succeeded(t, first.ID), h.succeeded(t, second.ID)
	if second.Started.Before(first.Ended) {
		t.Errorf("the second started at %v, before the first ended at %v", second.Started, first.Ended)
	}
}

func enoughMemory(t *testing.T, h *Harness) {
	job := h.start(t, Behaviour{
		Epochs: 2, Epoch: 50 * time.Millisecond,
		MemoryBytes: 512 * mebibyte, UseMemory: 128 * mebibyte,
	})
	job = h.succeeded(t, job.ID)
	if job.Resources.MemoryBytes != 512*mebibyte {
		t.Errorf("the job asked for %d bytes, want %d", job.Resources.MemoryBytes, 512*mebibyte)
	}
}

// wantJobs fails the test unless the driver lists exactly these jobs.
func (h *Harness) wantJobs(t *testing.T, want ...driver.JobID) {
	t.Helper()
	jobs, err := h.Driver.List(t.Context())
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	var got []driver.JobID
	for _, j := range jobs {
		got = append(got, j.ID)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("jobs %v, want %v", got, want)
	}
}
