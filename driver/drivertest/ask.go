package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"pitchpipe/driver"
)

// start starts a job of the behaviour under the request id "request".
func (h *Harness) start(t *testing.T, b Behaviour) driver.Job {
	t.Helper()
	return h.startSpec(t, "request", h.Job(t, b))
}

// startHeld starts a job that is pending for an hour unless something ends that.
func (h *Harness) startHeld(t *testing.T, b Behaviour) driver.Job {
	t.Helper()
	spec := h.Job(t, b)
	spec.NotBefore = h.Now().Add(time.Hour)
	return h.startSpec(t, "request", spec)
}

// startChanged starts a job whose first attempt has the change, by the intent "intent".
func (h *Harness) startChanged(t *testing.T, b Behaviour, c driver.Change) driver.Job {
	t.Helper()
	if h.Begin != nil {
		return h.Begin(t, h.Job(t, b), "intent", c)
	}
	job := h.startHeld(t, b)
	h.applied(t, job, "intent", c)
	return job
}

func (h *Harness) startSpec(t *testing.T, id driver.RequestID, spec driver.Spec) driver.Job {
	t.Helper()
	job, err := h.Driver.Start(t.Context(), id, spec)
	if err != nil {
		t.Fatalf("Start(%s): %v", id, err)
	}
	if job.ID == "" || job.Fingerprint == "" {
		t.Fatalf("Start(%s) returned a job without id or fingerprint: %+v", id, job)
	}
	return job
}

func (h *Harness) get(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	job, err := h.Driver.Get(t.Context(), id)
	if err != nil {
		t.Fatalf("Get(%s): %v", id, err)
	}
	return job
}

// ended waits until the job ended and returns it.
func (h *Harness) ended(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	var job driver.Job
	h.Eventually(t, fmt.Sprintf("job %s ends", id), func(context.Context) bool {
		job = h.get(t, id)
		return job.State.Ended()
	})
	return job
}

// succeeded waits until the job ended well and returns it.
func (h *Harness) succeeded(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	job := h.ended(t, id)
	wantState(t, job, driver.Succeeded)
	return job
}

// inAttempt waits until an attempt of the job runs and returns the job.
func (h *Harness) inAttempt(t *testing.T, id driver.JobID, attempt int) driver.Job {
	t.Helper()
	var job driver.Job
	h.Eventually(t, fmt.Sprintf("attempt %d of job %s runs", attempt, id), func(context.Context) bool {
		job = h.get(t, id)
		return job.State == driver.Running && job.Attempt == attempt
	})
	return job
}

// stop cancels the job.
func (h *Harness) stop(t *testing.T, id driver.JobID) {
	t.Helper()
	if err := h.Driver.Stop(t.Context(), id); err != nil {
		t.Fatalf("Stop(%s): %v", id, err)
	}
}

// epochs waits until the job's output has n lines of ended epochs.
func (h *Harness) epochs(t *testing.T, id driver.JobID, n int) {
	t.Helper()
	h.Eventually(t, fmt.Sprintf("job %s ends its epoch %d", id, n), func(context.Context) bool {
		return len(epochLines(h.logs(t, id, 0))) >= n
	})
}

// another waits until the job has ended one more epoch: an attempt that has just
// begun cannot be asked to save yet.
func (h *Harness) another(t *testing.T, id driver.JobID) {
	t.Helper()
	h.epochs(t, id, len(epochLines(h.logs(t, id, 0)))+1)
}

// logs returns the output of the job from offset on. A job that never ran may
// have none.
func (h *Harness) logs(t *testing.T, id driver.JobID, offset int64) string {
	t.Helper()
	r, err := h.Driver.Logs(t.Context(), id, offset)
	if err != nil {
		t.Fatalf("Logs(%s, %d): %v", id, offset, err)
	}
	text, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatalf("reading the output of %s: %v", id, err)
	}
	return string(text)
}

// epochLines returns the numbers of the epochs that the output says ended.
func epochLines(output string) []int {
	var out []int
	for _, m := range regexp.MustCompile(`(?m)^epoch (\d+)/\d+`).FindAllStringSubmatch(output, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return append(out, -1)
		}
		out = append(out, n)
	}
	return out
}

// eachEpochOnce fails the test unless the output tells of every epoch from 1 to
// n, in order and once.
func (h *Harness) eachEpochOnce(t *testing.T, id driver.JobID, n int) {
	t.Helper()
	output := h.logs(t, id, 0)
	var want []int
	for e := range n {
		want = append(want, e+1)
	}
	if got := epochLines(output); !slices.Equal(got, want) {
		t.Errorf("epochs in the output of %s: %v, want each of 1 to %d once; the output:\n%s", id, got, n, output)
	}
}

// eachEpoch fails the test unless the output tells of every epoch from 1 to n, if not once.
func (h *Harness) eachEpoch(t *testing.T, id driver.JobID, n int) {
	t.Helper()
	seen := map[int]bool{}
	for _, e := range epochLines(h.logs(t, id, 0)) {
		seen[e] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d epochs in the output", len(seen), n)
	}
}

// intent makes an intent for the job as it is now.
func (h *Harness) intent(job driver.Job, id string, change driver.Change) driver.Intent {
	cp := h.Checkpoint
	cp.Grace = 20 * time.Second
	return driver.Intent{
		ID: id, Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint,
		Change: change, Checkpoint: &cp, Note: "note of " + id,
	}
}

func (h *Harness) advance(t *testing.T, in driver.Intent) driver.Step {
	t.Helper()
	got, err := h.Driver.Advance(t.Context(), in)
	if err != nil {
		t.Fatalf("Advance(%s of %s): %v", in.ID, in.Job, err)
	}
	return got
}

// drive advances the intent until it is done, times times at each step, and
// returns the last step.
func (h *Harness) drive(t *testing.T, in driver.Intent, times int) driver.Step {
	t.Helper()
	var last driver.Step
	h.Eventually(t, fmt.Sprintf("intent %s of %s is done", in.ID, in.Job), func(context.Context) bool {
		for range times {
			last = h.advance(t, in)
		}
		return last.Kind.Done()
	})
	return last
}

// applied makes an intent for the job as it is now and carries it out.
func (h *Harness) applied(t *testing.T, job driver.Job, id string, change driver.Change) driver.Intent {
	t.Helper()
	in := h.intent(job, id, change)
	wantStep(t, h.drive(t, in, 1), driver.StepStarted)
	return in
}

func wantState(t *testing.T, job driver.Job, want driver.State) {
	t.Helper()
	if job.State != want {
		t.Fatalf("job %s is %s (%s, exit code %d), want %s", job.ID, job.State, job.Detail, job.ExitCode, want)
	}
}

func wantAttempts(t *testing.T, job driver.Job, want int) {
	t.Helper()
	if len(job.Attempts) != want {
		t.Fatalf("%d attempts, want %d: %+v", len(job.Attempts), want, job.Attempts)
	}
}

func wantStep(t *testing.T, got driver.Step, want driver.StepKind) {
	t.Helper()
	if got.Kind != want {
		t.Fatalf("step is %s (%s), want %s", got.Kind, got.Detail, want)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}
