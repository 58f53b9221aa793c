package slurm_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

func TestAMoveToMoreThanIsFreeNowIsRefusedBeforeTheJobIsAskedToSave(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		free   string // on its node and another
		waits  string
		job    func(*fakeJob)
		change driver.Change
		want   string // why not; empty = it is moved
	}{
		{"its own cores count", "n1|main|up|allocated|16/0/0/16|1|16384|16384|\n", "", nil, driver.Change{Cores: 1, MemoryBytes: 100 << 20}, ""},
		{"one core is missing", "n1|main|up|allocated|16/0/0/16|1|16384|100|\n", "", nil, driver.Change{Cores: 2}, "no room now for 2 cores"},
		{"a free core and its own are two", "n1|main|up|mixed|15/1/0/16|1|16384|100|\n", "", nil, driver.Change{Cores: 2}, ""},
		{"half a core is none", "n1|main|up|mixed|15/1/0/16|2|16384|100|\n", "", nil, driver.Change{Cores: 2}, "no room now"},
		{"its memory counts", "n1|main|up|mixed|1/15/0/16|1|16384|16384|\n", "", nil, driver.Change{MemoryBytes: 101 << 20}, "no room now"},
		{"who has all the memory needs no more", "n1|main|up|mixed|1/15/0/16|1|16384|16384|\n", "", func(j *fakeJob) { j.mem = 0 }, driver.Change{Cores: 2}, ""},
		{"another node has it", "n1|main|up|allocated|16/0/0/16|1|16384|100|\nn2|main|up|idle|0/16/0/16|1|16384|0|\n", "", nil, driver.Change{Cores: 2}, ""},
		{"another node is drained", "n1|main|up|allocated|16/0/0/16|1|16384|100|\nn2|main|up|drained|0/16/0/16|1|16384|0|\n", "", nil, driver.Change{Cores: 2}, "no room now"},
		{
			"another node may lack what the job wants", "n1|main|up|allocated|16/0/0/16|1|16384|100|\nn2|main|up|idle|0/16/0/16|1|16384|0|\n", "",
			func(j *fakeJob) { j.more = "Features=gpu" },
			driver.Change{Cores: 2},
			"no room now",
		},
		{"others wait for room", "n1|main|up|mixed|1/15/0/16|1|16384|100|\n", "9|9|N/A|Priority|bob|proj|other|\n", nil, driver.Change{Cores: 2}, "others wait"},
		{"others wait for their time", "n1|main|up|mixed|1/15/0/16|1|16384|100|\n", "9|9|N/A|BeginTime|bob|proj|other|\n", nil, driver.Change{Cores: 2}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			job := r.start(t)
			says(t, r, job.ID)
			r.f.free, r.f.waits = c.free, c.waits
			if c.job != nil {
				r.f.with(job.ID, c.job)
			}
			in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
			in.Change = c.change
			if c.want == "" {
				if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepCheckpointing {
					t.Errorf("%+v, %v; want %s", step, err, driver.StepCheckpointing)
				}
				return
			}
			for _, discard := range []bool{false, true} {
				in.Discard = discard
				if _, err := r.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrNoRoom) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %v: %s", err, driver.ErrNoRoom, c.want)
				}
			}
			if n := r.f.count("scancel") + r.f.count("scontrol requeue"); n > 0 {
				t.Errorf("%d signals and requeues, want none", n)
			}
		})
	}
}

// less is a Slurm that shows jobs with fewer CPUs than they are given.
type less struct{ command.Runner }

func (l less) Run(ctx context.Context, c command.Call) (command.Output, error) {
	out, err := l.Runner.Run(ctx, c)
	out.Stdout = []byte(strings.ReplaceAll(string(out.Stdout), "CPUs/Task=4", "CPUs/Task=1"))
	return out, err
}

func TestAJobIsMovedWithinWhatItWasGivenWhoeverWaits(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *slurm.Config) { c.Commands = less{c.Commands} })
	job := r.start(t)
	says(t, r, job.ID)
	r.f.with(job.ID, func(j *fakeJob) { j.cores = 4 })
	r.f.free, r.f.waits = "n1|main|up|allocated|16/0/0/16|1|16384|16384|\n", "9|9|N/A|Priority|bob|proj|other|\n"
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
	in.Change.Cores = 4
	if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepCheckpointing {
		t.Errorf("%+v, %v; want %s", step, err, driver.StepCheckpointing)
	}
}

// A job that waits gets the size that it is to have: nothing is stopped for that.
func TestAJobThatWaitsIsNotAskedForRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.free = "n1|main|up|allocated|16/0/0/16|1|16384|100|\n"
	if step, err := r.d.Advance(t.Context(), intent(job, nil)); err != nil || step.Kind != driver.StepChanged {
		t.Errorf("%+v, %v; want %s", step, err, driver.StepChanged)
	}
}

// The node has four cores, and each of two jobs with one is to have three.
func TestWhatAJobWillHaveIsNotFreeForAnotherUntilItHasIt(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	var jobs []driver.Job
	var saves []func()
	for _, request := range []driver.RequestID{"one", "two"} {
		job, err := r.d.Start(t.Context(), request, spec())
		if err != nil {
			t.Fatal(err)
		}
		saves = append(saves, says(t, r, job.ID))
		jobs = append(jobs, r.job(t, job.ID))
	}
	to := func(job driver.Job, id string) driver.Intent {
		in := intent(job, &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
		in.ID, in.Change.Cores = id, 3
		return in
	}
	first, second := to(jobs[0], "first"), to(jobs[1], "second")
	refused := func(free string) {
		t.Helper()
		r.f.free = free
		if _, err := r.d.Advance(t.Context(), second); !errors.Is(err, driver.ErrNoRoom) {
			t.Errorf("the other: %v, want %v", err, driver.ErrNoRoom)
		}
	}
	const both, one = "n1|main|up|mixed|2/2/0/4|1|16384|200|\n", "n1|main|up|mixed|1/3/0/4|1|16384|100|\n"
	r.f.free = both
	for _, want := range []driver.StepKind{driver.StepCheckpointing, driver.StepCheckpointing, driver.StepStopped, driver.StepChanged, driver.StepStarted} {
		if step, err := r.d.Advance(t.Context(), first); err != nil || step.Kind != want {
			t.Fatalf("%+v, %v; want %s", step, err, want)
		}
		refused(map[bool]string{true: both, false: one}[want == driver.StepCheckpointing])
		r.reopen(t) // as after a crash
		refused(one)
		saves[0]()
		r.f.free = both
	}
	r.f.run(jobs[0].ID)
	r.job(t, jobs[0].ID)
	refused("n1|main|up|allocated|4/0/0/4|1|16384|200|\n")
	r.f.with(jobs[0].ID, func(j *fakeJob) { r.f.end(j, "COMPLETED", 0) })
	r.job(t, jobs[0].ID)
	r.f.free = one
	if step, err := r.d.Advance(t.Context(), second); err != nil || step.Kind != driver.StepCheckpointing {
		t.Errorf("the other: %+v, %v; want %s once there is room", step, err, driver.StepCheckpointing)
	}
}
