package drivertest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
)

// Crash ends a driver in the middle of an Advance, as a kill would: nothing of that call
// is done after the point. Its zero value is ready; At is the driver's AfterStep.
type Crash struct {
	mu     sync.Mutex
	armed  bool
	struck []string
}

// errCrash is what a driver that dies panics with.
var errCrash = errors.New("the driver crashes here")

// At crashes at each point once, while it is armed.
func (c *Crash) At(point string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed || !slices.Contains(points(), point) || slices.Contains(c.struck, point) {
		return
	}
	c.armed = false
	c.struck = append(c.struck, point)
	panic(errCrash)
}

func (c *Crash) arm(yes bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = yes
}

// points lists the crash points in the order in which a move of a job passes them that says
// that it saved. A job that leaves by itself, or is discarded, passes some of them.
func points() []string {
	return []string{
		move.Begun, move.Asked, move.Noted, move.Saved, move.Told, move.Accepted, move.Left, move.Kept, move.Planned, move.Done, move.Queued,
	}
}

func crashSentences() []sentence {
	return []sentence{
		{"a move that crashes interrupt at every point is finished by the next driver", "reopen", crashMove},
		{"a move of a job that says that it saved is finished after a crash at every point", "reopen", crashSays},
		{"a change of a pending job is finished after a crash at every point", "hold, reopen", crashPending},
		{"an attempt whose discarding a crash interrupted at every point is finished by the next driver", "reopen", crashDiscard},
	}
}

func crashMove(t *testing.T, h *Harness) {
	job := h.runs(t, mover(longer), 1) // each crash costs a new driver
	in := h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})
	h.driveAcrossCrashes(t, in, move.Begun, move.Asked, move.Planned)
	h.reopened(t, job.ID)
	h.movedOnce(t, job, in, longer)
}

func crashSays(t *testing.T, h *Harness) {
	in := h.says(t)
	h.driveAcrossCrashes(t, in, move.Begun, move.Asked, move.Planned)
	job := h.reopened(t, in.Job)
	wantState(t, job, driver.Succeeded)
	if len(job.Attempts) != 2 || job.Attempts[1].Intent != in.ID {
		t.Errorf("attempts %+v, want two, the second with the intent", job.Attempts)
	}
}

func crashPending(t *testing.T, h *Harness) {
	job := h.startHeld(t, mover(2))
	in := h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})
	h.driveAcrossCrashes(t, in, move.Planned)
	h.changedOnce(t, h.reopened(t, job.ID), in)
}

func crashDiscard(t *testing.T, h *Harness) {
	job, n := h.saved(t)
	in := h.discard(job)
	h.driveAcrossCrashes(t, in, move.Saved, move.Planned)
	h.discarded(t, in, n)
}

// driveAcrossCrashes advances the intent until it is applied. The driver is opened again
// after every step, and crashes once at every point that a step passes. Every driver passes
// those that are given; whether it passes the others is up to it and to the moment.
func (h *Harness) driveAcrossCrashes(t *testing.T, in driver.Intent, points ...string) {
	t.Helper()
	h.Eventually(t, "the intent is applied across crashes", func(ctx context.Context) bool {
		got, err := h.crashing(ctx, in)
		// A request that the crash interrupted is repeated, and the scheduler may keep it waiting.
		again := errors.Is(err, driver.ErrTransient) || errors.Is(err, driver.ErrUnknown) || errors.Is(err, errCrash)
		if err != nil && !again {
			t.Fatalf("Advance after a crash: %v", err)
		}
		if err == nil && got.Kind == driver.StepStarted {
			return true
		}
		if err == nil && got.Kind.Done() {
			t.Fatalf("step is %s (%s), want %s", got.Kind, got.Detail, driver.StepStarted)
		}
		h.Driver = h.Reopen(t)
		return false
	})
	if h.Crash == nil {
		return
	}
	for _, point := range points {
		if !slices.Contains(h.Crash.struck, point) {
			t.Errorf("point %s was never passed; these were: %v", point, h.Crash.struck)
		}
	}
}

// crashing is one Advance in which the driver may crash.
func (h *Harness) crashing(ctx context.Context, in driver.Intent) (step driver.Step, err error) {
	h.Crash.arm(true)
	defer h.Crash.arm(false)
	defer func() {
		switch p := recover(); p {
		case nil:
		case errCrash:
			err = errCrash
		default:
			panic(p)
		}
	}()
	return h.Driver.Advance(ctx, in)
}
