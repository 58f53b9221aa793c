package drivertest

import (
	"fmt"
	"testing"
	"time"

	"pitchpipe/driver"
)

func advanceSentences() []sentence {
	return []sentence{
		{"a pending job is changed before its start, and its wait ends", "hold", changesPending(false)},
		{"a running job moves: it saves, leaves, and goes on under the new settings", "", moves(1)},
		{"every step may be taken twice", "", moves(2)},
		{"an intent that was applied stays applied", "", appliedAgain},
		{"the empty change returns to the owner's settings", "", emptyChange},
		{"a second move starts from where the first one left the job", "", twoMoves},
		{"an intent for an older attempt is superseded", "", olderAttempt},
		{"an intent for another job file is superseded", "", supersedes(func(in *driver.Intent) { in.Fingerprint = "another" })},
		{"an ended job is finished and never runs again", "", advanceEnded},
		{"a running job is not touched without a checkpoint", "", refuses(driver.ErrUnsupported, func(_ *Harness, in *driver.Intent) { in.Checkpoint = nil })},
		{"a job that ignores the signal is left alone and runs on", "", ignoresSignal},
		{"a job that saves after its grace is not lost", "", savesLate},
		{"a job that leaves with another status has ended", "", leavesOtherwise},
		{"a job that says that it saved is stopped and goes on from there", "", saysSaved},
		{"a change of the environment reaches the next attempt", "env", changeEnv},
		{"a live change reaches the next attempt, and is gone after the return to the owner's settings", "live", changeLive},
		{"a live change is refused where no restart carries one", "no live", refuses(driver.ErrUnsupported, func(_ *Harness, in *driver.Intent) {
			in.Change = driver.Change{Live: map[string]string{"rate": "0.25"}}
		})},
		{"an attempt killed under a tuned memory limit runs again under its owner's", "memory return", memoryReturn},
		{"an attempt killed for memory under any change runs again under its owner's settings", "settings return", returns(driver.Change{TimeLimit: time.Hour}, driver.Change{})},
		{"what is killed for memory under a change gets its owner's memory first, then everything", "settings return", returns(driver.Change{MemoryBytes: 64 * mebibyte, TimeLimit: time.Hour}, driver.Change{TimeLimit: time.Hour}, driver.Change{})},
		{"an intent stays applied after the return of memory", "hold, settings return", appliedBeforeReturn},
		{"a change that the machine cannot hold is invalid and changes nothing", "size", refuses(driver.ErrInvalid, func(h *Harness, in *driver.Intent) { in.Change = driver.Change{Cores: h.Cores + 1} })},
		{"a dry run tells of the same faults and changes nothing", "", dryRun},
	}
}

// mover is a job that can be moved, of n epochs.
func mover(n int) Behaviour {
	return Behaviour{Epochs: n, Epoch: epoch, Saves: true}
}

func changesPending(discard bool) func(*testing.T, *Harness) {
	return func(t *testing.T, h *Harness) {
		job := h.startHeld(t, mover(2))
		in := h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})
		in.Checkpoint, in.Discard = nil, discard
		wantStep(t, h.drive(t, in, 1), driver.StepStarted)
		h.changedOnce(t, h.ended(t, job.ID), in)
	}
}

// changedOnce is the end of a pending job of two epochs that was changed by the intent.
func (h *Harness) changedOnce(t *testing.T, job driver.Job, in driver.Intent) {
	t.Helper()
	wantState(t, job, driver.Succeeded)
	wantAttempts(t, job, 1) // a pending job needs no restart
	a := job.Attempts[0]
	if a.Change.TimeLimit != time.Hour || a.Intent != in.ID || a.Cause != driver.CauseIntent {
		t.Errorf("attempt %+v, want the change, the cause and the id of the intent", a)
	}
	h.eachEpochOnce(t, job.ID, 2)
}

// runs starts a job and returns it when it has ended n epochs.
func (h *Harness) runs(t *testing.T, b Behaviour, n int) driver.Job {
	t.Helper()
	job := h.start(t, b)
	h.epochs(t, job.ID, n)
	return h.get(t, job.ID)
}

// moves takes each step of a move so many times.
func moves(times int) func(*testing.T, *Harness) {
	return func(t *testing.T, h *Harness) {
		job := h.runs(t, mover(long), 1)
		in := h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})
		wantStep(t, h.drive(t, in, times), driver.StepStarted)
		h.movedOnce(t, job, in, long)
	}
}

// refuses spoils an intent, which is then refused by Check and Advance and leaves its job alone.
func refuses(want error, spoil func(*Harness, *driver.Intent)) func(*testing.T, *Harness) {
	return func(t *testing.T, h *Harness) {
		in := h.intent(h.runs(t, mover(long), 1), "intent", driver.Change{TimeLimit: time.Hour})
		spoil(h, &in)
		wantError(t, "Check", h.Driver.Check(t.Context(), in), want)
		_, err := h.Driver.Advance(t.Context(), in)
		wantError(t, "Advance", err, want)
		h.untouched(t, in.Job, long)
	}
}

// supersedes spoils intents, which are then superseded and leave their job alone.
func supersedes(spoil ...func(*driver.Intent)) func(*testing.T, *Harness) {
	return func(t *testing.T, h *Harness) {
		job := h.runs(t, mover(long), 1)
		for i, spoil := range spoil {
			in := h.intent(job, fmt.Sprint("intent ", i), driver.Change{TimeLimit: time.Hour})
			spoil(&in)
			wantStep(t, h.drive(t, in, 1), driver.StepSuperseded)
		}
		h.untouched(t, job.ID, long)
	}
}

// movedOnce waits for the end of a mover of long epochs that was moved once by the
// intent.
func (h *Harness) movedOnce(t *testing.T, before driver.Job, in driver.Intent, epochs int) {
	t.Helper()
	job := h.succeeded(t, before.ID)
	if job.Attempt != before.Attempt+1 || len(job.Attempts) != before.Attempt+1 {
		t.Fatalf("attempt %d of %d, want %d", job.Attempt, len(job.Attempts), before.Attempt+1)
	}
	wantLast(t, job, in)
	h.eachEpochOnce(t, job.ID, epochs)
}

// wantLast fails the test unless the last attempt is that of the intent, and began when the one
// before it had ended.
func wantLast(t *testing.T, job driver.Job, in driver.Intent) {
	t.Helper()
	old, a := job.Attempts[len(job.Attempts)-2], job.Attempts[len(job.Attempts)-1]
	if a.Intent != in.ID || a.Cause != driver.CauseIntent || a.Change.TimeLimit != in.Change.TimeLimit {
		t.Errorf("last attempt %+v, want the change, the cause and the id of intent %s", a, in.ID)
	}
	if old.Ended.IsZero() || a.Started.Before(old.Ended) {
		t.Errorf("attempt %d ended at %v, attempt %d started at %v: two ran at a time", old.Number, old.Ended, a.Number, a.Started)
	}
}

func appliedAgain(t *testing.T, h *Harness) {
	job := h.runs(t, mover(long), 1)
	in := h.applied(t, job, "intent", driver.Change{TimeLimit: time.Hour})
	wantStep(t, h.advance(t, in), driver.StepStarted)
	h.epochs(t, job.ID, 6)
	wantStep(t, h.advance(t, in), driver.StepStarted)
	h.movedOnce(t, job, in, long)
	// Finished would say that the job ended before the change.
	wantStep(t, h.advance(t, in), driver.StepStarted)
}

func emptyChange(t *testing.T, h *Harness) {
	job := h.startChanged(t, mover(long), driver.Change{TimeLimit: time.Hour})
	h.epochs(t, job.ID, 2)
	job = h.get(t, job.ID)
	if job.Change.TimeLimit != time.Hour {
		t.Errorf("change while it runs: %+v, want the first intent's", job.Change)
	}
	h.applied(t, job, "back", driver.Change{})
	job = h.succeeded(t, job.ID)
	if job.Change.TimeLimit != 0 || job.Attempts[len(job.Attempts)-1].Change.TimeLimit != 0 {
		t.Errorf("change %+v, want none", job.Change)
	}
	h.eachEpochOnce(t, job.ID, long)
}

func twoMoves(t *testing.T, h *Harness) {
	const epochs = 3 * long // the first move may take most of long on a busy machine
	job := h.changes(t, mover(epochs), driver.Change{TimeLimit: time.Hour}, driver.Change{TimeLimit: 2 * time.Hour})
	if job.Change.TimeLimit != 2*time.Hour {
		t.Errorf("change %+v, want the second", job.Change)
	}
}

// changes starts a job, makes the changes one after the other while it runs, and waits for its end.
func (h *Harness) changes(t *testing.T, b Behaviour, changes ...driver.Change) driver.Job {
	t.Helper()
	job := h.start(t, b)
	for i, change := range changes {
		h.epochs(t, job.ID, 2+4*i)
		job = h.inAttempt(t, job.ID, i+1)
		h.another(t, job.ID)
		in := h.intent(job, fmt.Sprint("intent ", i), change)
		wantError(t, "Check", h.Driver.Check(t.Context(), in), nil)
		wantStep(t, h.drive(t, in, 1), driver.StepStarted)
	}
	job = h.succeeded(t, job.ID)
	wantAttempts(t, job, len(changes)+1)
	h.eachEpochOnce(t, job.ID, b.Epochs)
	return job
}

func olderAttempt(t *testing.T, h *Harness) {
	job := h.runs(t, mover(long), 1)
	in := h.applied(t, job, "intent", driver.Change{TimeLimit: time.Hour})
	wantStep(t, h.drive(t, h.intent(job, "late", driver.Change{TimeLimit: 2 * time.Hour}), 1), driver.StepSuperseded)
	h.movedOnce(t, job, in, long)
}

// untouched waits for the end of a job that must succeed in its first attempt.
func (h *Harness) untouched(t *testing.T, id driver.JobID, epochs int) {
	t.Helper()
	job := h.succeeded(t, id)
	if job.Attempt != 1 || len(job.Attempts) != 1 || job.Change.TimeLimit != 0 {
		t.Errorf("attempt %d of %d, change %+v; want the first and no change", job.Attempt, len(job.Attempts), job.Change)
	}
	h.eachEpochOnce(t, id, epochs)
}

func advanceEnded(t *testing.T, h *Harness) {
	job := h.ended(t, h.start(t, Behaviour{Epochs: 1}).ID)
	wantStep(t, h.advance(t, h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})), driver.StepFinished)
	h.Sleep(t.Context(), 300*time.Millisecond)
	h.untouched(t, job.ID, 1)
}
