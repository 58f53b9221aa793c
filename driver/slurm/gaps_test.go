package slurm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

// forgetAll is a slurmctld that has reached MinJobAge.
func (r *rig) forgetAll() {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	clear(r.f.jobs)
}

func TestOnlyAJobThatWasBeingMovedIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		moving bool
		want   driver.State
	}{
		"one that is forgotten while it runs":     {false, driver.Cancelled},
		"one that is forgotten while it is moved": {true, driver.Lost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			job := r.start(t)
			r.f.run(job.ID)
			in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
			if c.moving {
				if _, err := r.d.Advance(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
			r.forgetAll()
			for range 2 {
				got := r.job(t, job.ID)
				if got.State != c.want || got.ExitCode != -1 || got.Detail != driver.DetailForgotten && !strings.Contains(got.Detail, "slurmctld does not") {
					t.Errorf("the job is %s with %d: %s; want %s with -1", got.State, got.ExitCode, got.Detail, c.want)
				}
			}
			if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepFinished {
				t.Errorf("step %+v (%v), want %s", step, err, driver.StepFinished)
			}
		})
	}
}

func TestWhatTheOwnerChangesAfterTheLastStepIsHis(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		word         func(*fakeJob)
		cores, mem   int // that the attempt has
		own          int // cores that the owner asks for from now on
		intent       bool
		changedCores int
	}{
		"nothing":                  {func(*fakeJob) {}, 2, 200, 1, true, 2},
		"the memory":               {func(j *fakeJob) { j.mem = 900 }, 2, 900, 1, false, 2},
		"the cores":                {func(j *fakeJob) { j.cores = 4 }, 4, 200, 4, false, 0},
		"all, back to what it was": {func(j *fakeJob) { j.cores, j.mem = 1, 100 }, 1, 100, 1, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			job := r.start(t)
			in := intent(r.job(t, job.ID), nil)
			in.Change = driver.Change{Cores: 2, MemoryBytes: 200 << 20}
			r.settled(t, in)
			r.f.with(job.ID, c.word)
			waits := r.job(t, job.ID)
			if step := r.settled(t, in); step.Kind != driver.StepStarted {
				t.Errorf("step %+v, want %s: it was applied", step, driver.StepStarted)
			}
			if waits.Resources.Cores != c.own {
				t.Errorf("the owner asks for %d cores, want %d", waits.Resources.Cores, c.own)
			}
			r.f.run(job.ID)
			got := r.job(t, job.ID)
			if len(got.Attempts) != 1 || (got.Attempts[0].Intent == in.ID) != c.intent || got.Change.Cores != c.changedCores {
				t.Errorf("attempts %+v with %+v, want %d cores of the intent", got.Attempts, got.Change, c.changedCores)
			}
			if step := r.settled(t, in); step.Kind != driver.StepStarted {
				t.Errorf("step %+v of attempts %+v, want %s whatever became of it", step, got.Attempts, driver.StepStarted)
			}
			// He puts it back into the queue, and the next intent starts from his word.
			r.f.with(job.ID, func(j *fakeJob) { r.f.requeue(j) })
			next := intent(r.job(t, job.ID), nil)
			next.ID, next.Change = "next", driver.Change{TimeLimit: time.Hour}
			r.settled(t, next)
			r.f.with(job.ID, func(j *fakeJob) {
				want := 100
				if name == "the memory" {
					want = 900
				}
				if j.cores != c.own || j.mem != want || j.limit != 60 {
					t.Errorf("the next intent has %d cores, %d MiB, %d minutes; want %d, %d, 60", j.cores, j.mem, j.limit, c.own, want)
				}
				r.f.end(j, "COMPLETED", 0)
			})
			if step := r.settled(t, in); step.Kind != driver.StepStarted {
				t.Errorf("step %+v of a job that ended, want %s", step, driver.StepStarted)
			}
		})
	}
}

func TestASizeOfAnEarlierIntentIsNotTheOwnersWord(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	for _, cores := range []int{2, 4} {
		in := intent(r.job(t, job.ID), nil)
		in.ID, in.Change = fmt.Sprintf("%d cores", cores), driver.Change{Cores: cores}
		r.settled(t, in)
		if cores == 2 {
			r.f.run(job.ID)
			r.job(t, job.ID)
			r.f.with(job.ID, func(j *fakeJob) { r.f.requeue(j) })
		}
	}
	r.restarted()
	r.f.with(job.ID, func(j *fakeJob) { j.cores = 2 }) // which the second was to replace
	r.job(t, job.ID)
	r.f.run(job.ID)
	got := r.job(t, job.ID)
	if got.Resources.Cores != 1 || got.Attempts[1].Intent != "4 cores" {
		t.Errorf("the owner asks for %d cores, want his 1; attempts %+v", got.Resources.Cores, got.Attempts)
	}
	r.f.with(job.ID, func(j *fakeJob) {
		if j.cores != 4 {
			t.Errorf("%d cores, want the 4 of the intent again", j.cores)
		}
	})
	// The start of the attempt is forgotten, too.
	r.restarted()
	r.f.with(job.ID, func(j *fakeJob) { j.state, j.cores = "PENDING", 2 })
	if got := r.job(t, job.ID); got.State != driver.Pending || len(got.Attempts) != 1 || got.Resources.Cores != 1 {
		t.Errorf("the job is %s with %+v and asks for %d cores, want it to wait for its second attempt", got.State, got.Attempts, got.Resources.Cores)
	}
	r.f.run(job.ID)
	if got := r.job(t, job.ID); len(got.Attempts) != 2 || got.Attempts[1].Intent != "4 cores" || !got.Attempts[1].Ended.IsZero() {
		t.Errorf("attempts %+v, want the second of the intent", got.Attempts)
	}
}

// restarted is a slurmctld that was killed and started.
func (r *rig) restarted() {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	r.f.conf += "BOOT_TIME = " + time.Now().UTC().Add(time.Second).Format("2006-01-02T15:04:05") + "\n"
}

func TestAJobThatSavedIsLetGoHoweverOftenSlurmctldForgets(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.conf += "RequeueExitHold = 85\n"
	r.reopen(t)
	job := r.start(t)
	r.f.run(job.ID)
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Exit: 85})
	if _, err := r.d.Advance(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	held := func(j *fakeJob) { j.state, j.restarts, j.exit, j.held, j.cores = "SPECIAL_EXIT", 1, 85, true, 1 }
	r.f.with(job.ID, held)
	if step := r.settled(t, in); step.Kind != driver.StepStarted {
		t.Fatalf("step %+v, want %s", step, driver.StepStarted)
	}
	for range 2 { // the first time before the attempt began, then after
		r.restarted()
		r.f.with(job.ID, held)
		r.job(t, job.ID)
		r.f.with(job.ID, func(j *fakeJob) {
			if j.state != "PENDING" || j.cores != 2 {
				t.Errorf("the job is %s with %d cores, want it to be let go with 2", j.state, j.cores)
			}
		})
		r.f.run(job.ID)
		if got := r.job(t, job.ID); got.Attempt != 2 || got.Attempts[1].Intent != in.ID {
			t.Errorf("attempts %+v, want the second of the intent", got.Attempts)
		}
	}
	// Forgotten while the next intent is about it.
	next := intent(r.job(t, job.ID), in.Checkpoint)
	next.ID, next.Change = "next", driver.Change{Cores: 3}
	if _, err := r.d.Advance(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	r.restarted()
	r.f.with(job.ID, held)
	if step := r.settled(t, next); step.Kind != driver.StepSuperseded {
		t.Errorf("step %+v, want %s", step, driver.StepSuperseded)
	}
	r.job(t, job.ID)
	r.f.with(job.ID, func(j *fakeJob) {
		if j.state != "PENDING" {
			t.Errorf("the job is %s, want it to be let go", j.state)
		}
	})
	r.f.run(job.ID)
	r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "COMPLETED", 0) })
	if got := r.job(t, job.ID); got.State != driver.Succeeded || len(got.Attempts) != 2 {
		t.Errorf("the job is %s after %+v, want %s after two attempts", got.State, got.Attempts, driver.Succeeded)
	}
}

// The record of the signal is what a crash took.
func TestAJobThatSavedIsLetGoWhoeverDiedAfterTheSignal(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.conf += "RequeueExitHold = 85\n"
	r.reopen(t)
	job := r.start(t)
	r.f.run(job.ID)
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Exit: 85})
	r.f.cut = func(c command.Call, after bool) error {
		if c.Name == "scancel" && after {
			return errCrash
		}
		return nil
	}
	if _, err := r.d.Advance(t.Context(), in); !errors.Is(err, errCrash) {
		t.Fatalf("%v, want %v", err, errCrash)
	}
	r.f.cut = nil
	r.reopen(t)
	held := func(j *fakeJob) { j.state, j.restarts, j.exit, j.held, j.cores = "SPECIAL_EXIT", 1, 85, true, 1 }
	r.f.with(job.ID, held)
	if step := r.settled(t, in); step.Kind != driver.StepStarted {
		t.Fatalf("step %+v, want %s", step, driver.StepStarted)
	}
	r.restarted()
	r.f.with(job.ID, held)
	r.job(t, job.ID)
	r.f.with(job.ID, func(j *fakeJob) {
		if j.state != "PENDING" || j.cores != 2 {
			t.Errorf("the job is %s with %d cores, want it to be let go with 2", j.state, j.cores)
		}
	})
}

func TestAJobWhoseMarkerWasEditedIsNotSubmittedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(*fakeJob)
		want int // submissions
	}{
		"the comment is another":                        {func(j *fakeJob) { j.comment = "his own" }, 1},
		"it is another job of the name":                 {func(j *fakeJob) { j.comment, j.script = "", []byte("#!/bin/sh\nfalse\n") }, 2},
		"it was submitted long before":                  {func(j *fakeJob) { j.comment, j.submitted = "", j.submitted.Add(-time.Hour) }, 2},
		"it is the job of another controller's request": {func(j *fakeJob) { j.comment = "pitchpipe-request=0" }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *slurm.Config) { c.Quiet = time.Nanosecond })
			r.f.cut = unknown
			if _, err := r.d.Start(t.Context(), "request", spec()); !errors.Is(err, driver.ErrUnknown) {
				t.Fatalf("Start: %v, want %v", err, driver.ErrUnknown)
			}
			r.f.cut = nil
			r.f.with("1", c.edit)
			_, err := r.d.Start(t.Context(), "request", spec())
			if again := c.want > 1; again != (err == nil) || !again && !errors.Is(err, driver.ErrUnknown) {
				t.Errorf("Start: %v, want a submission %t", err, again)
			}
			if n := r.f.count("sbatch"); n != c.want {
				t.Errorf("%d submissions, want %d", n, c.want)
			}
		})
	}
}

func TestAWaitThatIsOverAndOursIsEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s := spec()
	s.NotBefore = time.Now().Add(time.Hour)
	job, err := r.d.Start(t.Context(), "request", s)
	if err != nil {
		t.Fatal(err)
	}
	ended := func() int { return r.f.count("scontrol update JobId=" + string(job.ID) + " StartTime=now") }
	r.job(t, job.ID)
	if n := ended(); n != 0 {
		t.Errorf("the wait was ended before its time")
	}
	r.f.with(job.ID, func(j *fakeJob) { j.eligible = time.Now().Add(-time.Second) })
	r.f.cut = func(command.Call, bool) error { return driver.ErrTransient }
	r.job(t, job.ID)
	r.f.cut = nil
	for range 3 {
		r.job(t, job.ID)
	}
	if n := ended(); n != 2 { // one of them without effect
		t.Errorf("the wait was ended %d times, want once more after the failure", n)
	}
}

func TestAJobThatItsOwnerHoldsWaitsForNoOneElse(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.f.with(job.ID, func(j *fakeJob) { j.out = out })
	r.f.run(job.ID)
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
	for kind := driver.StepRunning; kind != driver.StepChanged; {
		step, err := r.d.Advance(t.Context(), in)
		if err != nil || step.Kind.Done() {
			t.Fatalf("step %+v (%v), want %s", step, err, driver.StepChanged)
		}
		kind = step.Kind
		if err := os.WriteFile(out, []byte("saved\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.f.with(job.ID, func(j *fakeJob) { j.held = true })
	if step := r.settled(t, in); step.Kind != driver.StepSuperseded {
		t.Errorf("step %+v, want %s", step, driver.StepSuperseded)
	}
	r.f.with(job.ID, func(j *fakeJob) {
		if !j.held || j.eligible.After(time.Now().Add(10*time.Second)) {
			t.Errorf("held %t, waits until %v; want it held and no longer than that", j.held, j.eligible)
		}
	})
}

// Whoever died between the hold and the end of the attempt.
func TestAHoldOfARunningJobOutlivesItsSave(t *testing.T) {
	t.Parallel()
	for grace, want := range map[time.Duration]driver.StepKind{time.Minute: driver.StepSuperseded, time.Nanosecond: driver.StepAbandoned} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.f.conf = "RequeueExitHold = 85\n"
			r.reopen(t)
			job := r.start(t)
			r.f.run(job.ID)
			in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: grace, Exit: 85})
			if _, err := r.d.Advance(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			r.f.with(job.ID, func(j *fakeJob) { j.held = true })
			if _, err := r.d.Advance(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			r.reopen(t)
			r.f.with(job.ID, func(j *fakeJob) { j.state, j.restarts, j.exit = "SPECIAL_EXIT", 1, 85 })
			if step := r.settled(t, in); step.Kind != want {
				t.Errorf("step %+v, want %s", step, want)
			}
			updates := r.f.count("scontrol update")
			got := r.job(t, job.ID)
			if n := r.f.count("scontrol release") + r.f.count("scontrol update") - updates; n != 0 || got.State != driver.Pending || got.Held != "" || got.Change.Cores != 0 {
				t.Errorf("%d releases and updates of a job that is %s with %+v, held %q; want none", n, got.State, got.Change, got.Held)
			}
			r.f.with(job.ID, func(j *fakeJob) { j.held = false }) // its owner lets it go
			r.f.run(job.ID)
			if got = r.job(t, job.ID); got.Attempt != 2 || got.State != driver.Running {
				t.Errorf("the job is %s in attempt %d, want it to run in its second", got.State, got.Attempt)
			}
		})
	}
}
