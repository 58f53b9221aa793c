package drivertest

import (
	"testing"
	"time"

	"pitchpipe/driver"
)

func discardSentences() []sentence {
	return []sentence{
		{"an attempt is discarded without being asked to save, and the next one resumes from the checkpoint before", "", discards(1)},
		{"an attempt that is discarded does not get the signal", "", discardsUnasked},
		{"every step of a discarding intent may be taken twice", "", discards(2)},
		{"a job that ends by itself before its attempt is discarded is not run again", "", discardsNothing},
		{"a pending job is changed by an intent that discards as by any other", "hold", changesPending(true)},
		{"an attempt is not discarded without a checkpoint", "", refuses(driver.ErrUnsupported, func(_ *Harness, in *driver.Intent) { in.Discard, in.Checkpoint = true, nil })},
		{"an attempt of another job file, or an older one, is not discarded", "", supersedes(
			func(in *driver.Intent) { in.Discard, in.Fingerprint = true, "another" },
			func(in *driver.Intent) { in.Discard, in.Attempt = true, in.Attempt-1 },
		)},
	}
}

// discard makes an intent that discards the attempt that runs.
func (h *Harness) discard(job driver.Job) driver.Intent {
	in := h.intent(job, "discard", driver.Change{TimeLimit: 2 * time.Hour})
	in.Discard = true
	return in
}

// saved starts a mover of so many epochs, moves it once, so that it has a checkpoint, and
// waits until its second attempt has ended epochs that no checkpoint has. It returns the
// job and how many epochs are saved at most; two are at least.
func (h *Harness) saved(t *testing.T) (driver.Job, int) {
	t.Helper()
	job := h.runs(t, mover(longer), 2)
	h.applied(t, job, "probe", driver.Change{TimeLimit: time.Hour})
	n := len(epochLines(h.logs(t, job.ID, 0)))
	h.epochs(t, job.ID, n+2)
	job = h.get(t, job.ID)
	wantState(t, job, driver.Running)
	return job, n
}

// discarded waits for the end of a job whose second attempt was discarded, and whose
// third went on after the epochs that were saved, which are two to most.
func (h *Harness) discarded(t *testing.T, in driver.Intent, most int) {
	t.Helper()
	job := h.reopened(t, in.Job)
	wantState(t, job, driver.Succeeded)
	wantAttempts(t, job, 3)
	wantLast(t, job, in)
	// 1, 2, .., cut, and from the one after the saved ones again.
	got := epochLines(h.logs(t, in.Job, 0))
	cut := 0
	for cut < len(got) && got[cut] == cut+1 {
		cut++
	}
	again := got[cut:]
	ok := cut >= most+2 && len(again) > 0 && len(again) <= longer-2 && len(again) >= longer-most
	for i, e := range again {
		ok = ok && e == longer-len(again)+i+1
	}
	if !ok {
		t.Errorf("epochs in the output of %s: %v, want at least %d, and then those after the second to the %dth again", in.Job, got, most+2, most)
	}
}

// discards takes each step so many times.
func discards(times int) func(*testing.T, *Harness) {
	return func(t *testing.T, h *Harness) {
		job, n := h.saved(t)
		in := h.discard(job)
		wantError(t, "Check", h.Driver.Check(t.Context(), in), nil)
		wantStep(t, h.drive(t, in, times), driver.StepStarted)
		h.discarded(t, in, n)
		wantStep(t, h.advance(t, in), driver.StepStarted)
	}
}

// discardsUnasked: a job that knows no signal dies of it.
func discardsUnasked(t *testing.T, h *Harness) {
	job := h.startChanged(t, Behaviour{Epochs: long, Epoch: epoch}, driver.Change{TimeLimit: time.Hour})
	h.epochs(t, job.ID, 2)
	in := h.discard(h.get(t, job.ID))
	wantStep(t, h.drive(t, in, 1), driver.StepStarted)
	job = h.succeeded(t, job.ID)
	if len(job.Attempts) != 2 || job.Attempts[1].Intent != in.ID {
		t.Errorf("attempts %+v, want a second one of the intent", job.Attempts)
	}
}

func discardsNothing(t *testing.T, h *Harness) {
	job := h.startChanged(t, mover(3), driver.Change{TimeLimit: time.Hour})
	h.epochs(t, job.ID, 1)
	in := h.discard(h.get(t, job.ID))
	h.ended(t, job.ID)
	wantStep(t, h.advance(t, in), driver.StepFinished)
	h.Sleep(t.Context(), 300*time.Millisecond)
	job = h.get(t, job.ID)
	wantState(t, job, driver.Succeeded)
	wantAttempts(t, job, 1)
	h.eachEpochOnce(t, job.ID, 3)
}
