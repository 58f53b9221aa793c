package drivertest

import (
	"context"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
)

func viewSentences() []sentence {
	return []sentence{
		{"a watcher first hears of every job that exists, and then of changes", "", watch},
		{"a watch ends with its context", "", watchEnds},
		{"an unknown job is not found", "", unknownJob},
		{"the outlook of a job is a wait that can be, before, during and after its run", "", outlook},
		{"jobs are listed oldest first", "", listOrder},
		{"the output is read from any offset", "", logsOffset},
		{"a driver that is opened again finds its jobs", "reopen", reopen},
	}
}

func watch(t *testing.T, h *Harness) {
	old := h.ended(t, h.start(t, Behaviour{Epochs: 1}).ID)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := h.Driver.Watch(ctx)
	if err != nil {
		t.Fatalf("Watch: %v", err)
	}
	h.wantEvent(t, events, "the job that exists", func(id driver.JobID) bool { return id == old.ID })
	job := h.startSpec(t, "second", h.Job(t, Behaviour{Epochs: 2, Epoch: 2 * epoch}))
	h.wantEvent(t, events, "the job that was started", func(id driver.JobID) bool { return id == job.ID })
	// Events are merged: where the suite was late, the one before told of the end.
	if h.get(t, job.ID).State == driver.Succeeded {
		return
	}
	h.wantEvent(t, events, "the end of the job", func(id driver.JobID) bool {
		return id == job.ID && h.get(t, id).State == driver.Succeeded
	})
}

// receives waits until something that comes from the channel is what is meant; ok is false where it
// is closed.
func (h *Harness) receives(t *testing.T, events <-chan driver.Event, what string, is func(e driver.Event, ok bool) bool) {
	t.Helper()
	h.Eventually(t, what, func(context.Context) bool {
		for {
			select {
			case e, ok := <-events:
				if is(e, ok) {
					return true
				}
			default:
				return false
			}
		}
	})
}

func (h *Harness) wantEvent(t *testing.T, events <-chan driver.Event, what string, is func(driver.JobID) bool) {
	t.Helper()
	h.receives(t, events, "an event of "+what, func(e driver.Event, ok bool) bool {
		if !ok {
			t.Fatalf("the watch broke while waiting for %s", what)
		}
		return is(e.Job)
	})
}

func watchEnds(t *testing.T, h *Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := h.Driver.Watch(ctx)
	if err != nil {
		t.Fatalf("Watch: %v", err)
	}
	cancel()
	h.receives(t, events, "the channel is closed", func(_ driver.Event, ok bool) bool { return !ok })
}

func unknownJob(t *testing.T, h *Harness) {
	ctx := t.Context()
	const unknown driver.JobID = "unknown"
	_, err := h.Driver.Get(ctx, unknown)
	wantError(t, "Get", err, driver.ErrNotFound)
	wantError(t, "Stop", h.Driver.Stop(ctx, unknown), driver.ErrNotFound)
	_, err = h.Driver.Outlook(ctx, unknown)
	wantError(t, "Outlook", err, driver.ErrNotFound)
	in := h.intent(driver.Job{ID: unknown, Fingerprint: "x"}, "intent", driver.Change{})
	_, err = h.Driver.Advance(ctx, in)
	wantError(t, "Advance", err, driver.ErrNotFound)
	r, err := h.Driver.Logs(ctx, unknown, 0)
	wantError(t, "Logs", err, driver.ErrNotFound)
	if err == nil {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func outlook(t *testing.T, h *Harness) {
	if h.Begin == nil {
		h.wantOutlook(t, h.startHeld(t, Behaviour{Epochs: 1}).ID)
	}
	job := h.startSpec(t, "runs", h.Job(t, Behaviour{Epochs: long, Epoch: epoch}))
	h.epochs(t, job.ID, 1)
	h.wantOutlook(t, job.ID)
	h.ended(t, job.ID)
	if got := h.wantOutlook(t, job.ID); got != (driver.Outlook{}) {
		t.Errorf("outlook of an ended job: %+v, want none", got)
	}
}

func (h *Harness) wantOutlook(t *testing.T, id driver.JobID) driver.Outlook {
	t.Helper()
	got, err := h.Driver.Outlook(t.Context(), id)
	if err != nil {
		t.Fatalf("Outlook(%s): %v", id, err)
	}
	if got.Wait != nil && *got.Wait < 0 {
		t.Errorf("Outlook(%s): a wait of %v", id, *got.Wait)
	}
	if got.ClosedBy != "" && got.Closed.IsZero() {
		t.Errorf("Outlook(%s): closed by %s, and never", id, got.ClosedBy)
	}
	return got
}

func listOrder(t *testing.T, h *Harness) {
	spec := h.Job(t, Behaviour{Epochs: 1})
	var want []driver.JobID
	for _, id := range []driver.RequestID{"c", "a", "b"} {
		want = append(want, h.startSpec(t, id, spec).ID)
	}
	h.wantJobs(t, want...)
	for _, id := range want {
		h.ended(t, id)
	}
	h.wantJobs(t, want...)
}

func logsOffset(t *testing.T, h *Harness) {
	job := h.ended(t, h.start(t, Behaviour{Epochs: 3}).ID)
	all := h.logs(t, job.ID, 0)
	if len(epochLines(all)) != 3 {
		t.Fatalf("output %q, want three epochs", all)
	}
	at := strings.Index(all, "epoch 2/")
	if got := h.logs(t, job.ID, int64(at)); got != all[at:] {
		t.Errorf("from offset %d: %q, want %q", at, got, all[at:])
	}
	if got := h.logs(t, job.ID, int64(len(all)+10)); got != "" {
		t.Errorf("from behind the end: %q, want nothing", got)
	}
}

func reopen(t *testing.T, h *Harness) {
	short := h.startSpec(t, "short", h.Job(t, Behaviour{Epochs: 1}))
	h.ended(t, short.ID)
	long := h.startSpec(t, "long", h.Job(t, Behaviour{Epochs: 10, Epoch: 100 * time.Millisecond}))
	h.epochs(t, long.ID, 1)
	spec := h.Job(t, Behaviour{Epochs: 10, Epoch: 100 * time.Millisecond})
	h.Driver = h.Reopen(t)
	h.wantJobs(t, short.ID, long.ID)
	wantState(t, h.get(t, short.ID), driver.Succeeded)
	if again := h.startSpec(t, "long", spec); again.ID != long.ID {
		t.Errorf("the request repeated after the crash is job %s, want %s", again.ID, long.ID)
	}
	job := h.reopened(t, long.ID)
	wantState(t, job, driver.Succeeded)
	wantAttempts(t, job, 1)
	h.eachEpochOnce(t, long.ID, 10)
}
