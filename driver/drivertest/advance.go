package drivertest

import (
	"context"
	"testing"
	"time"

	"pitchpipe/driver"
)

func advanceSentences() []sentence {
	return []sentence{
		{"a pending job is changed before its start, and its wait ends", needsHold, changePending},
		{"a running job moves: it saves, leaves, and goes on under the new settings", nil, moveRunning},
		{"every step may be taken twice", nil, stepsTwice},
		{"an intent that was applied stays applied", nil, appliedAgain},
		{"the empty change returns to the owner's settings", nil, emptyChange},
		{"a second move starts from where the first one left the job", nil, twoMoves},
		{"an intent for an older attempt is superseded", nil, olderAttempt},
		{"an intent for another job file is superseded", nil, otherFingerprint},
		{"an ended job is finished and never runs again", nil, advanceEnded},
		{"a running job is not touched without a checkpoint", nil, noCheckpoint},
		{"a job that ignores the signal is left alone and runs on", nil, ignoresSignal},
		{"a job that saves after its grace is not lost", nil, savesLate},
		{"a job that leaves with another status has ended", nil, leavesOtherwise},
		{"a job that says that it saved is stopped and goes on from there", nil, saysSaved},
		{"a change of the environment reaches the next attempt", needsEnv, changeEnv},
		{"a live change reaches the next attempt, and is gone after the return to the owner's settings", needsLive, changeLive},
		{"a live change is refused where no restart carries one", needsNoLive, refuseLive},
		{"an attempt killed under a tuned memory limit runs again under its owner's", needsMemoryReturn, memoryReturn},
		{"an attempt killed for memory under any change runs again under its owner's settings", needsSettingsReturn, settingsReturn},
		{"what is killed for memory under a change gets its owner's memory first, then everything", needsSettingsReturn, allReturns},
		{"an intent stays applied after the return of memory", needsHoldAndSettingsReturn, appliedBeforeReturn},
		{"a change that the machine cannot hold is invalid and changes nothing", needsSize, changeTooLarge},
		{"a dry run tells of the same faults and changes nothing", nil, dryRun},
	}
}

// mover is a job that can be moved, of n epochs.
func mover(n int) Behaviour {
	return Behaviour{Epochs: n, Epoch: epoch, Saves: true}
}

func changePending(t *testing.T, h *Harness) {
	job := h.startHeld(t, mover(2))
	wantState(t, job, driver.Pending)
	in := h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})
	in.Checkpoint = nil
	wantStep(t, h.drive(t, in, 1), driver.StepStarted)
	job = h.ended(t, job.ID)
	wantState(t, job, driver.Succeeded)
	if len(job.Attempts) != 1 {
		t.Fatalf("%d attempts, want 1: a pending job needs no restart", len(job.Attempts))
	}
	a := job.Attempts[0]
	if a.Change.TimeLimit != time.Hour || a.Intent != "intent" || a.Cause != driver.CauseIntent {
		t.Errorf("attempt %+v, want the change, the cause and the id of the intent", a)
	}
	h.eachEpochOnce(t, job.ID, 2)
}

func moveRunning(t *testing.T, h *Harness) {
	job := h.start(t, mover(long))
	h.epochs(t, job.ID, 2)
	job = h.get(t, job.ID)
	in := h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})
	wantStep(t, h.drive(t, in, 1), driver.StepStarted)
	h.movedOnce(t, job, in)
}

// movedOnce waits for the end of a mover of long epochs that was moved once by the
// intent.
func (h *Harness) movedOnce(t *testing.T, before driver.Job, in driver.Intent) {
	t.Helper()
	job := h.ended(t, before.ID)
	wantState(t, job, driver.Succeeded)
	if job.Attempt != before.Attempt+1 || len(job.Attempts) != before.Attempt+1 {
		t.Fatalf("attempt %d of %d, want %d", job.Attempt, len(job.Attempts), before.Attempt+1)
	}
	old, a := job.Attempts[len(job.Attempts)-2], job.Attempts[len(job.Attempts)-1]
	if a.Intent != in.ID || a.Cause != driver.CauseIntent || a.Change.TimeLimit != in.Change.TimeLimit {
		t.Errorf("last attempt %+v, want the change, the cause and the id of intent %s", a, in.ID)
	}
	if old.Ended.IsZero() || a.Started.Before(old.Ended) {
		t.Errorf("attempt %d ended at %v, attempt %d started at %v: two ran at a time", old.Number, old.Ended, a.Number, a.Started)
	}
	h.eachEpochOnce(t, job.ID, long)
}

func stepsTwice(t *testing.T, h *Harness) {
	job := h.start(t, mover(long))
	h.epochs(t, job.ID, 2)
	job = h.get(t, job.ID)
	in := h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})
	wantStep(t, h.drive(t, in, 2), driver.StepStarted)
	h.movedOnce(t, job, in)
}

func appliedAgain(t *testing.T, h *Harness) {
	job := h.start(t, mover(long))
	h.epochs(t, job.ID, 1)
	job = h.get(t, job.ID)
	in := h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})
	wantStep(t, h.drive(t, in, 1), driver.StepStarted)
	wantStep(t, h.advance(t, in), driver.StepStarted)
	h.epochs(t, job.ID, 6)
	wantStep(t, h.advance(t, in), driver.StepStarted)
	h.movedOnce(t, job, in)
	// Finished would say that the job ended before the change.
	wantStep(t, h.advance(t, in), driver.StepStarted)
}

func emptyChange(t *testing.T, h *Harness) {
	job, _ := h.startChanged(t, mover(long), driver.Change{TimeLimit: time.Hour})
	h.epochs(t, job.ID, 2)
	job = h.get(t, job.ID)
	if job.Change.TimeLimit != time.Hour {
		t.Errorf("change while it runs: %+v, want the first intent's", job.Change)
	}
	wantStep(t, h.drive(t, h.intent(job, "back", driver.Change{}), 1), driver.StepStarted)
	job = h.ended(t, job.ID)
	wantState(t, job, driver.Succeeded)
	if job.Change.TimeLimit != 0 || job.Attempts[len(job.Attempts)-1].Change.TimeLimit != 0 {
		t.Errorf("change %+v, want none", job.Change)
	}
	h.eachEpochOnce(t, job.ID, long)
}

func twoMoves(t *testing.T, h *Harness) {
	const epochs = 3 * long // the first move may take most of long on a busy machine
	job := h.start(t, mover(epochs))
	for i, id := range []string{"one", "two"} {
		h.epochs(t, job.ID, 2+4*i)
		h.Eventually(t, "the next attempt runs", func(context.Context) bool {
			job = h.get(t, job.ID)
			return job.State == driver.Running && job.Attempt == i+1
		})
		h.another(t, job.ID)
		in := h.intent(job, id, driver.Change{TimeLimit: time.Duration(i+1) * time.Hour})
		wantStep(t, h.drive(t, in, 1), driver.StepStarted)
	}
	job = h.ended(t, job.ID)
	wantState(t, job, driver.Succeeded)
	if len(job.Attempts) != 3 || job.Change.TimeLimit != 2*time.Hour {
		t.Errorf("%d attempts, change %+v; want 3 and the second change", len(job.Attempts), job.Change)
	}
	h.eachEpochOnce(t, job.ID, epochs)
}

func olderAttempt(t *testing.T, h *Harness) {
	job := h.start(t, mover(long))
	h.epochs(t, job.ID, 1)
	job = h.get(t, job.ID)
	in := h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})
	wantStep(t, h.drive(t, in, 1), driver.StepStarted)
	wantStep(t, h.drive(t, h.intent(job, "late", driver.Change{TimeLimit: 2 * time.Hour}), 1), driver.StepSuperseded)
	h.movedOnce(t, job, in)
}

func otherFingerprint(t *testing.T, h *Harness) {
	job := h.start(t, mover(long))
	h.epochs(t, job.ID, 1)
	in := h.intent(h.get(t, job.ID), "intent", driver.Change{TimeLimit: time.Hour})
	in.Fingerprint = "another"
	wantStep(t, h.drive(t, in, 1), driver.StepSuperseded)
	h.untouched(t, job.ID, long)
}

// untouched waits for the end of a job that must succeed in its first attempt.
func (h *Harness) untouched(t *testing.T, id driver.JobID, epochs int) {
	t.Helper()
	job := h.ended(t, id)
	wantState(t, job, driver.Succeeded)
	if job.Attempt != 1 || len(job.Attempts) != 1 || job.Change.TimeLimit != 0 {
		t.Errorf("attempt %d of %d, change %+v; want the first and no change", job.Attempt, len(job.Attempts), job.Change)
	}
	h.eachEpochOnce(t, id, epochs)
}

func advanceEnded(t *testing.T, h *Harness) {
	job := h.start(t, Behaviour{Epochs: 1})
	job = h.ended(t, job.ID)
	wantStep(t, h.advance(t, h.intent(job, "intent", driver.Change{TimeLimit: time.Hour})), driver.StepFinished)
	h.Sleep(t.Context(), 300*time.Millisecond)
	h.untouched(t, job.ID, 1)
}

func noCheckpoint(t *testing.T, h *Harness) {
	job := h.start(t, mover(long))
	h.epochs(t, job.ID, 1)
	in := h.intent(h.get(t, job.ID), "intent", driver.Change{TimeLimit: time.Hour})
	in.Checkpoint = nil
	_, err := h.Driver.Advance(t.Context(), in)
	wantError(t, "Advance of a running job without a checkpoint", err, driver.ErrUnsupported)
	h.untouched(t, job.ID, long)
}
