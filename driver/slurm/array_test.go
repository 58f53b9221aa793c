package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
)

func arraySpec() driver.Spec {
	return driver.Spec{
		Filename: "a.sh", Env: map[string]string{"FROM": "submission"},
		Source: []byte("#!/bin/sh\n#SBATCH --array=1-3\n#TUNE knob rate env=RATE values=1,2 default=1\ntrue\n"),
	}
}

// arrayRig is a driver that has submitted an array of three tasks.
func arrayRig(t *testing.T) (*rig, []driver.JobID) {
	t.Helper()
	r := newRig(t, func(c *slurm.Config) { c.Parse, c.TaskProlog = detect.For("slurm"), true })
	job, err := r.d.Start(t.Context(), "request", arraySpec())
	if err != nil || job.ID != "1_1" {
		t.Fatalf("Start: job %s (%v), want 1_1", job.ID, err)
	}
	return r, []driver.JobID{"1_1", "1_2", "1_3"}
}

func TestEachTaskOfAnArrayIsAJob(t *testing.T) {
	t.Parallel()
	r, ids := arrayRig(t)
	r.f.run(ids[0])
	for i, id := range ids {
		job := r.job(t, id)
		if job.ID != id || job.Request != "request" || job.Resources.Env["FROM"] != "submission" || !strings.Contains(string(job.Source), "--array") {
			t.Errorf("task %s is %+v", id, job)
		}
		if want := map[int]string{0: "2"}[i]; job.Alias != want {
			t.Errorf("task %s has alias %q, want %q", id, job.Alias, want)
		}
	}
	for _, id := range []driver.JobID{"1", "2", "1_9", "9_1"} {
		if job, err := r.d.Get(t.Context(), id); !errors.Is(err, driver.ErrNotFound) {
			t.Errorf("%s is %+v (%v), want %v", id, job, err, driver.ErrNotFound)
		}
	}
}

// One task has the number of its array, and may be in the accounting before the others.
func TestATaskThatIsAloneInTheAccountingIsNotItsArray(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *slurm.Config) {
		f := c.Commands.(*fake)
		f.conf += "AccountingStorageType = accounting_storage/slurmdbd\n"
		c.Commands = &ledger{fake: f, says: "1|" + f.user + "|COMPLETED|0:0|2026-11-22T15:12:29|2026-11-22T15:12:30|2026-11-22T15:12:32|1|100M|UNLIMITED|main|a|normal|1|sbatch|\n"}
		c.Parse, c.TaskProlog = detect.For("slurm"), true
	})
	if _, err := r.d.Start(t.Context(), "request", arraySpec()); err != nil {
		t.Fatal(err)
	}
	if job, err := r.d.Get(t.Context(), "1"); !errors.Is(err, driver.ErrNotFound) || !strings.Contains(err.Error(), "1 is an array, whose tasks are jobs such as 1_") {
		t.Errorf("the array is %+v (%v), want %v", job, err, driver.ErrNotFound)
	}
}

func TestTheScriptOfAnArrayIsReadOnce(t *testing.T) {
	t.Parallel()
	r, ids := arrayRig(t)
	if err := r.d.Close(); err != nil {
		t.Fatal(err)
	}
	r.cfg.Dir = filepath.Join(t.TempDir(), "another") // which has not submitted it
	if err := os.Mkdir(r.cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.open(t)
	prints := map[string]bool{}
	for _, id := range ids {
		prints[r.job(t, id).Fingerprint] = true
	}
	if n := r.f.count("scontrol write batch_script"); n != 1 || len(prints) != 1 {
		t.Errorf("%d readings and %d fingerprints, want one of each", n, len(prints))
	}
}

// settled advances an intent until it is done, and opens the driver again where
// it crashed.
func (r *rig) settled(t *testing.T, in driver.Intent) driver.Step {
	t.Helper()
	for range 30 {
		step, err := r.d.Advance(t.Context(), in)
		if errors.Is(err, errCrash) {
			r.reopen(t)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if step.Kind.Done() {
			return step
		}
	}
	t.Fatal("the intent comes to no end")
	return driver.Step{}
}

func TestATaskThatWaitsIsChangedAloneWhateverCrashes(t *testing.T) {
	t.Parallel()
	for crash := range 5 {
		for _, id := range []driver.JobID{"1_1", "1_3"} {
			t.Run(fmt.Sprintf("task %s, crash at effect %d", id, crash), func(t *testing.T) {
				t.Parallel()
				r, ids := arrayRig(t)
				if id == ids[2] { // it is the last and keeps the array's number
					r.f.run(ids[0])
					r.f.run(ids[1])
				}
				in := intent(r.job(t, id), nil)
				in.Change.Env = map[string]string{"RATE": "2"}
				seen := 0
				r.f.cut = func(command.Call, bool) error {
					if seen++; seen == crash {
						return errCrash
					}
					return nil
				}
				if step := r.settled(t, in); step.Kind != driver.StepStarted {
					t.Fatalf("step %+v, want %s", step, driver.StepStarted)
				}
				number := map[driver.JobID]string{"1_1": "2", "1_3": "1"}[id]
				text, err := os.ReadFile(filepath.Join(r.cfg.Dir, "slurm-env", number))
				if err != nil || string(text) != "RATE=2\n" {
					t.Errorf("the file of number %s has %q (%v), want the variable", number, text, err)
				}
				for _, other := range ids {
					r.f.with(other, func(j *fakeJob) {
						if want := map[bool]int{true: 2, false: 1}[other == id]; j.cores != want {
							t.Errorf("task %s has %d cores, want %d", other, j.cores, want)
						}
						if j.eligible.After(time.Now()) {
							t.Errorf("task %s waits until %v", other, j.eligible)
						}
					})
				}
				r.f.run(id)
				if got := r.job(t, id); len(got.Attempts) != 1 || got.Attempts[0].Intent != in.ID || got.Alias != number {
					t.Errorf("attempts %+v, alias %q; want one of the intent, and %s", got.Attempts, got.Alias, number)
				}
				r.f.with(id, func(j *fakeJob) { r.f.end(j, "COMPLETED", 0) })
				r.job(t, id)
				if left, err := filepath.Glob(filepath.Join(r.cfg.Dir, "slurm-env", "*")); err != nil || len(left) != 0 {
					t.Errorf("%v (%v) is left of a task that ended", left, err)
				}
			})
		}
	}
}

func TestATaskThatWaitsForItsOwnersTimeGoesOnWaiting(t *testing.T) {
	t.Parallel()
	r, ids := arrayRig(t)
	until := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	r.f.with(ids[1], func(j *fakeJob) { j.eligible = until })
	in := intent(r.job(t, ids[1]), nil)
	in.Change = driver.Change{Env: map[string]string{"RATE": "2"}}
	r.settled(t, in)
	r.f.with(ids[1], func(j *fakeJob) {
		if !j.eligible.Equal(until) || !j.numbered {
			t.Errorf("the task waits until %v, want %v and a number of its own", j.eligible, until)
		}
	})
}

func TestARunningTaskIsAskedOnceWhileOthersWait(t *testing.T) {
	t.Parallel()
	r, ids := arrayRig(t)
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.f.with(ids[0], func(j *fakeJob) { j.out = out })
	r.f.run(ids[0])
	in := intent(r.job(t, ids[0]), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
	if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepCheckpointing {
		t.Fatalf("step %+v (%v), want %s", step, err, driver.StepCheckpointing)
	}
	if err := os.WriteFile(out, []byte("saved\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if step := r.settled(t, in); step.Kind != driver.StepStarted {
		t.Errorf("step %+v, want %s", step, driver.StepStarted)
	}
	if n := r.f.count("scancel --full --signal=USR1 1_1"); n != 1 {
		t.Errorf("%d signals, want 1", n)
	}
	if n := r.f.count("scontrol requeue Incomplete 1_1"); n != 1 {
		t.Errorf("%d requeues of the task, want 1", n)
	}
}

func TestAnArrayOfUnknownOutcomeIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *slurm.Config) { c.Parse = detect.For("slurm") })
	r.f.cut = unknown
	if _, err := r.d.Start(t.Context(), "request", arraySpec()); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("Start: %v, want %v", err, driver.ErrUnknown)
	}
	r.f.run("1_2")
	for range 2 {
		if job, err := r.d.Start(t.Context(), "request", arraySpec()); err != nil || job.ID != "1_1" {
			t.Errorf("Start: job %s (%v), want 1_1", job.ID, err)
		}
	}
	if n := r.f.count("sbatch"); n != 1 {
		t.Errorf("%d submissions, want 1", n)
	}
}

func TestNoTaskIsChangedByTheNumberOfItsArray(t *testing.T) {
	t.Parallel()
	r, ids := arrayRig(t)
	r.settled(t, intent(r.job(t, ids[1]), nil))
	if err := r.d.Stop(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	for _, c := range r.f.calls {
		words := strings.Fields(c)
		if effect := strings.HasPrefix(c, "scontrol update") || words[0] == "scancel"; effect && (slices.Contains(words, "1") || slices.Contains(words, "JobId=1")) {
			t.Errorf("%s would change all tasks", c)
		}
	}
}

func TestOneTaskWakesItsArray(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *slurm.Config) { c.Parse = detect.For("slurm") })
	s := arraySpec()
	s.NotBefore = time.Now().Add(time.Hour)
	job, err := r.d.Start(t.Context(), "request", s)
	if err != nil {
		t.Fatal(err)
	}
	ids := []driver.JobID{job.ID, "1_2", "1_3"}
	for _, id := range ids {
		r.f.with(id, func(j *fakeJob) { j.eligible = time.Now().Add(-time.Second) })
	}
	for _, id := range ids {
		r.job(t, id)
		r.job(t, id)
	}
	if n, all := r.f.count("scontrol update JobId=1_1 StartTime=now"), r.f.count("scontrol update"); n != 1 || all != 1 {
		t.Errorf("%d updates of the first task and %d in all, want 1", n, all)
	}
}

// named is a broker that writes down the names it is asked by.
type named struct {
	slurmctl.Actor
	asked map[string]bool
	split error // of an update that would give a task its number
}

func (n named) Update(ctx context.Context, job string, u slurmctl.Update) error {
	n.asked["update "+job] = true
	if n.split != nil && u.Cores == nil && (u.Requeue != nil || u.Start != nil && *u.Start > 0) {
		return n.split
	}
	return n.Actor.Update(ctx, job, u)
}

func (n named) May(_ context.Context, job string, _ slurmctl.Update) error {
	n.asked["may "+job] = true
	return nil
}

func (n named) Script(ctx context.Context, job string) ([]byte, error) {
	n.asked["script "+job] = true
	return n.Actor.Script(ctx, job)
}

// siteOfArrays is a site's driver on a Slurm with another user's array of three.
func siteOfArrays(t *testing.T, split error) (*rig, named) {
	t.Helper()
	n := named{asked: map[string]bool{}, split: split}
	r := newRig(t, func(c *slurm.Config) {
		n.Actor = slurmctl.Commands{Runner: c.Commands}
		c.Parse, c.Everyone, c.User, c.Actor, c.TaskProlog, c.Marked = detect.For("slurm"), true, "controller", n, true, true
	})
	r.f.user = "alice"
	if _, err := r.f.Run(t.Context(), command.Call{Name: "sbatch", Args: []string{"--job-name=a"}, Stdin: arraySpec().Source, Effect: true}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []driver.JobID{"1_1", "1_2", "1_3"} {
		r.f.with(id, func(j *fakeJob) { j.admin = "pitchpipe:1:-" })
	}
	return r, n
}

func TestForASiteATaskIsChangedByTheHandOfItsBroker(t *testing.T) {
	t.Parallel()
	r, n := siteOfArrays(t, nil)
	in := intent(r.job(t, "1_2"), nil)
	in.Change = driver.Change{Cores: 2, Env: map[string]string{"RATE": "2"}}
	if err := r.d.Check(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if step := r.settled(t, in); step.Kind != driver.StepStarted {
		t.Fatalf("step %+v, want %s", step, driver.StepStarted)
	}
	want := map[string]bool{"may 1_2": true, "update 1_2": true, "script 1_2": true}
	if !maps.Equal(n.asked, want) {
		t.Errorf("the broker was asked for %v, want %v", n.asked, want)
	}
	r.f.with("1_2", func(j *fakeJob) {
		if j.cores != 2 || j.eligible.After(time.Now()) {
			t.Errorf("the task has %d cores and waits until %v, want 2 at once", j.cores, j.eligible)
		}
	})
	text, err := os.ReadFile(filepath.Join(r.cfg.Dir, "slurm-env", "3"))
	if err != nil || string(text) != "RATE=2\n" {
		t.Errorf("its settings are %q (%v)", text, err)
	}
}

func TestATaskWhoseNumberTheBrokerRefusesIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	for _, until := range []time.Duration{0, time.Hour} {
		r, _ := siteOfArrays(t, driver.ErrDenied)
		r.f.with("1_2", func(j *fakeJob) { j.eligible = time.Now().UTC().Add(until).Truncate(time.Second) })
		in := intent(r.job(t, "1_2"), nil)
		in.Change = driver.Change{Env: map[string]string{"RATE": "2"}}
		if _, err := r.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrDenied) {
			t.Errorf("waiting %v: Advance: %v, want %v", until, err, driver.ErrDenied)
		}
		if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepSuperseded {
			t.Errorf("waiting %v: then step %+v, %v; want %s", until, step, err, driver.StepSuperseded)
		}
		if left, err := filepath.Glob(filepath.Join(r.cfg.Dir, "slurm-env", "*")); err != nil || len(left) > 0 {
			t.Errorf("waiting %v: settings %v (%v) are there all the same", until, left, err)
		}
	}
}
