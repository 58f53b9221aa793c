package slurm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

func TestAnAttemptTellsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.with(job.ID, func(j *fakeJob) { j.cores = 3 })
	r.f.run(job.ID)
	paused := time.Now().UTC().Add(-time.Minute)
	r.f.with(job.ID, func(j *fakeJob) {
		j.started = paused.Add(-time.Minute).Truncate(time.Second)
		j.more = "SuspendTime=" + paused.Format("2006-01-02T15:04:05") + " SecsPreSuspend=40"
	})
	if a := r.job(t, job.ID).Attempts[0]; a.CPUs != 3 || a.Suspended != 20*time.Second {
		t.Errorf("%d CPUs, suspended for %v; want 3 and 20 s", a.CPUs, a.Suspended)
	}
	// What it asks for as it waits again is not what it had.
	r.f.with(job.ID, func(j *fakeJob) { r.f.requeue(j); j.cores, j.more = 5, "" })
	if a := r.job(t, job.ID).Attempts; len(a) != 1 || a[0].CPUs != 3 || a[0].Suspended != 20*time.Second {
		t.Errorf("attempts %+v, want one with its 3 CPUs", a)
	}
	r.f.run(job.ID)
	r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "COMPLETED", 0) })
	if a := r.job(t, job.ID).Attempts; len(a) != 2 || a[1].CPUs != 5 || a[1].Suspended != 0 {
		t.Errorf("attempts %+v, want a second with 5 CPUs", a)
	}
}

func TestASuspendedJobIsNotAskedToSave(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.run(job.ID)
	r.f.with(job.ID, func(j *fakeJob) { j.state = "SUSPENDED" })
	if seen := r.job(t, job.ID); seen.State != driver.Running || !seen.Suspended {
		t.Errorf("it is %s, and suspended: %t; want running and suspended", seen.State, seen.Suspended)
	}
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
	discard := in
	discard.Discard = true
	if step, err := r.d.Advance(t.Context(), discard); err != nil || step.Kind != driver.StepRunning || r.f.count("scontrol requeue") > 0 {
		t.Errorf("to discard: %+v, %v, %d requeues; want %s and none", step, err, r.f.count("scontrol requeue"), driver.StepRunning)
	}
	if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepRunning || r.f.count("scancel") > 0 {
		t.Errorf("%+v, %v, %d signals; want %s and none", step, err, r.f.count("scancel"), driver.StepRunning)
	}
}

func TestMoreCoresThanTheOwnerAsksForNeedTheSitesWord(t *testing.T) {
	t.Parallel()
	for _, allowed := range []bool{false, true} {
		r := newRig(t, func(c *slurm.Config) { c.Above = func(driver.Job) bool { return allowed } })
		job := r.start(t)
		r.f.with(job.ID, func(j *fakeJob) { j.cores = 8 })
		in := intent(r.job(t, job.ID), nil)
		in.Change.Cores = 4
		if err := r.d.Check(t.Context(), in); err != nil {
			t.Errorf("4 cores of 8: %v", err)
		}
		// He takes less between the decision and its first step.
		r.f.with(job.ID, func(j *fakeJob) { j.cores = 2 })
		if _, err := r.d.Advance(t.Context(), in); errors.Is(err, driver.ErrDenied) == allowed || err != nil == allowed {
			t.Errorf("4 cores where he asks for 2, allowed %t: %v", allowed, err)
		}
	}
}

func TestWhatSlurmGivesForAnotherReasonIsNotChanged(t *testing.T) {
	t.Parallel()
	cores, memory := driver.Change{Cores: 2}, driver.Change{MemoryBytes: 200 << 20}
	for more, changes := range map[string][]driver.Change{
		"OverSubscribe=NO": {cores},
		"TresPerNode=gres/gpu:1 CpusPerTres=gres:gpu:6":  {cores, memory},
		"TresPerNode=gres/gpu:1 MemPerTres=gres:gpu:400": {memory},
		"MinMemoryCPU=400M ReqB:S:C:T=0:0:*:1":           {cores, memory},
	} {
		r := newRig(t, nil)
		job := r.start(t)
		shared := r.job(t, job.ID).Resources.Command
		r.f.with(job.ID, func(j *fakeJob) { j.more = more })
		in := intent(r.job(t, job.ID), nil)
		for _, in.Change = range changes {
			if err := r.d.Check(t.Context(), in); !errors.Is(err, driver.ErrUnsupported) {
				t.Errorf("%s: %+v: %v, want %v", more, in.Change, err, driver.ErrUnsupported)
			}
		}
		if got := r.job(t, job.ID).Resources.Command; (got != shared) != (more == "OverSubscribe=NO") || !strings.HasPrefix(got, shared) {
			t.Errorf("%s: its kind is %q, and %q without: want another of a whole node alone", more, got, shared)
		}
	}
}

func TestAnIntentThatIsRefusedIsInTheWayOfNoOther(t *testing.T) {
	t.Parallel()
	for name, prefix := range map[string]string{"its signal": "scancel", "its requeue": "scontrol requeue"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			job := r.start(t)
			saves := says(t, r, job.ID)
			in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
			refuses := true
			r.f.cut = func(c command.Call, after bool) error {
				if refuses && !after && strings.HasPrefix(c.String(), prefix) {
					return &command.Failed{Call: c, Status: 1, Cause: driver.ErrDenied}
				}
				return nil
			}
			_, err := r.d.Advance(t.Context(), in)
			if err == nil {
				saves()
				_, err = r.d.Advance(t.Context(), in)
			}
			if !errors.Is(err, driver.ErrDenied) {
				t.Fatalf("%v, want %v", err, driver.ErrDenied)
			}
			refuses = false
			if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepSuperseded {
				t.Errorf("the same again: %+v, %v; want %s", step, err, driver.StepSuperseded)
			}
			in.ID = "next"
			if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepCheckpointing {
				t.Errorf("the next: %+v, %v; want %s", step, err, driver.StepCheckpointing)
			}
		})
	}
}

// A site holds jobs that leave with a certain status, for someone to look at them.
func TestAJobThatTheSiteHoldsForAnotherStatusIsNotLetGo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cp   driver.Checkpoint
		exit int
		want driver.StepKind
	}{
		"the status that says it saved":              {driver.Checkpoint{Exit: 85}, 85, driver.StepStopped},
		"another":                                    {driver.Checkpoint{Exit: 85}, 99, driver.StepSuperseded},
		"any, of a job that says so and goes on":     {driver.Checkpoint{Done: "^saved$"}, 99, driver.StepSuperseded},
		"one of a job that could do either of these": {driver.Checkpoint{Exit: 85, Done: "^saved$"}, 85, driver.StepStopped},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.f.conf += "RequeueExitHold = 85,99\n"
			job := r.start(t)
			says(t, r, job.ID)
			c.cp.Signal, c.cp.Grace = "USR1", time.Minute
			in := intent(r.job(t, job.ID), &c.cp)
			if _, err := r.d.Advance(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			r.f.with(job.ID, func(j *fakeJob) { j.state, j.restarts, j.exit, j.held = "SPECIAL_EXIT", 1, c.exit, true })
			step, err := r.d.Advance(t.Context(), in)
			if err != nil || step.Kind != c.want {
				t.Errorf("%+v, %v; want %s", step, err, c.want)
			}
			r.job(t, job.ID) // nor later
			if released := r.f.count("scontrol release") > 0; released == (c.want == driver.StepSuperseded) {
				t.Errorf("released: %t", released)
			}
		})
	}
}

func TestJobsOfAnotherShapeAreOfAnotherKind(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.job(t, r.start(t).ID)
	wide := newRig(t, func(c *slurm.Config) { c.Commands = wider{c.Commands} })
	other := wide.job(t, wide.start(t).ID)
	if one, many := job.Resources.Command, other.Resources.Command; one == "" || many == one || !strings.HasPrefix(many, one) {
		t.Errorf("a job of one task is %q, and one of four %q; want another kind", one, many)
	}
	if job.Observed != "" || other.Observed != "jobs of several tasks are observed, not changed" || other.Resources.Cores != 4*job.Resources.Cores {
		t.Errorf("a job of one task %+v, and one of four %+v; want the cores of all, and why it is not changed", job, other)
	}
	r.f.with(job.ID, func(j *fakeJob) { j.noRequeue = true })
	if again := r.job(t, job.ID); job.NoRequeue || !again.NoRequeue {
		t.Errorf("restarts are forbidden: %t, then %t; want so after its owner forbade them", job.NoRequeue, again.NoRequeue)
	}
}

// wider is a Slurm whose jobs have four tasks.
type wider struct{ command.Runner }

func (w wider) Run(ctx context.Context, c command.Call) (command.Output, error) {
	out, err := w.Runner.Run(ctx, c)
	out.Stdout = []byte(strings.ReplaceAll(string(out.Stdout), "NumTasks=1", "NumTasks=4"))
	return out, err
}

// says lets a job run whose output is a file, and returns a function that makes it say that it saved.
func says(t *testing.T, r *rig, id driver.JobID) func() {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	say := func(text string) {
		t.Helper()
		if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	say("")
	r.f.with(id, func(j *fakeJob) { j.out = out })
	r.f.run(id)
	return func() { say("saved\n") }
}
