package slurm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// starved is a job with less memory than its owner asked for, which kills it.
func starved(t *testing.T, r *rig) driver.JobID {
	t.Helper()
	job := r.start(t)
	in := intent(job, nil)
	in.Change = driver.Change{MemoryBytes: 64 << 20, TimeLimit: time.Hour}
	if step := r.settled(t, in); step.Kind != driver.StepStarted {
		t.Fatalf("step %+v", step)
	}
	r.f.run(job.ID)
	r.job(t, job.ID)
	r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "OUT_OF_MEMORY", 0) })
	return job.ID
}

func TestAReturnOfMemoryGoesOnAfterACrashAtEachEffect(t *testing.T) {
	t.Parallel()
	for crash := range 9 {
		t.Run(fmt.Sprintf("crash at effect %d", crash), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			id := starved(t, r)
			seen, requeues := 0, 0
			r.f.cut = func(c command.Call, after bool) error {
				if after && len(c.Args) > 0 && c.Args[0] == "requeue" {
					requeues++
				}
				if seen++; seen == crash {
					return errCrash
				}
				return nil
			}
			for range 12 {
				job, err := r.d.Get(t.Context(), id)
				if errors.Is(err, errCrash) {
					r.reopen(t)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if job.State.Ended() {
					t.Fatalf("it is reported as %s", job.State)
				}
			}
			r.f.with(id, func(j *fakeJob) {
				if j.state != "PENDING" || j.restarts != 1 || j.mem != 100 || j.limit != 60 || j.eligible.After(time.Now().Add(5*time.Second)) {
					t.Errorf("Slurm has %+v", j)
				}
			})
			r.f.run(id)
			job := r.job(t, id)
			if len(job.Attempts) != 2 || job.Attempts[1].Cause != driver.CauseMemory || job.Attempts[1].Change.MemoryBytes != 0 || job.Attempts[1].Change.TimeLimit != time.Hour {
				t.Errorf("attempts %+v", job.Attempts)
			}
			r.f.with(id, func(j *fakeJob) { r.f.end(j, "COMPLETED", 0) })
			if job := r.job(t, id); job.State != driver.Succeeded || requeues != 1 {
				t.Errorf("%s after %d requeues", job.State, requeues)
			}
		})
	}
}

func TestAKillForMemoryStands(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(r *rig, id driver.JobID)
	}{
		{"where its owner forbids restarts by now", func(r *rig, id driver.JobID) { r.f.with(id, func(j *fakeJob) { j.noRequeue = true }) }},
		{"where Slurm refuses the requeue", func(r *rig, _ driver.JobID) {
			r.f.cut = func(c command.Call, after bool) error {
				if !after && c.Args[0] == "requeue" {
					return driver.ErrDenied
				}
				return nil
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			id := starved(t, r)
			tc.change(r, id)
			r.job(t, id)
			if job := r.job(t, id); job.State != driver.MemoryExceeded {
				t.Errorf("it is %s", job.State)
			}
		})
	}
	t.Run("where someone depended on it when it was changed", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, nil)
		job := r.start(t)
		r.f.dependants = fmt.Sprintf("9 1 afterok:%s(unfulfilled) after\n", job.ID)
		in := intent(job, nil)
		in.Change = driver.Change{MemoryBytes: 64 << 20}
		if err := r.d.Check(t.Context(), in); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("Check of less memory: %v", err)
		}
		shown, who := r.f.conf, r.f.dependants
		r.f.conf, r.f.dependants = shown+"PrivateData = jobs\n", ""
		if err := r.d.Check(t.Context(), in); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("Check of less memory where others' jobs are hidden: %v", err)
		}
		r.f.conf, r.f.dependants = shown, who
		in.Change = driver.Change{TimeLimit: time.Hour}
		r.settled(t, in)
		r.f.run(job.ID)
		r.job(t, job.ID)
		r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "OUT_OF_MEMORY", 0) })
		if job := r.job(t, job.ID); job.State != driver.MemoryExceeded {
			t.Errorf("it is %s", job.State)
		}
	})
}

// away is a slurmctld that does not say a second time who depends on whom.
type away struct {
	*fake

	asked int
}

func (a *away) Run(ctx context.Context, c command.Call) (command.Output, error) {
	if c.Name == "squeue" && slices.Contains(c.Args, parse.DependantsFormat) {
		if a.asked++; a.asked == 2 {
			return command.Output{}, fmt.Errorf("slurmctld is away: %w", driver.ErrTransient)
		}
	}
	return a.fake.Run(ctx, c)
}

func TestMemoryIsNotLoweredWhereItIsNotKnownWhoWouldHearOfAKill(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(cfg *slurm.Config) { cfg.Commands = &away{fake: cfg.Commands.(*fake)} })
	job := r.start(t)
	in := intent(job, nil)
	in.Change = driver.Change{MemoryBytes: 64 << 20}
	if step, err := r.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("%+v, %v; want %v", step, err, driver.ErrTransient)
	}
	r.f.with(job.ID, func(j *fakeJob) {
		if j.mem != 100 {
			t.Errorf("Slurm has %d MiB", j.mem)
		}
	})
	if step := r.settled(t, in); step.Kind != driver.StepStarted {
		t.Errorf("asked again: %+v", step)
	}
}

// Saving takes memory, and the attempt has less until it is over.
func TestAKillForMemoryWhileItIsToGoBackToItsOwnersSettingsIsTakenBack(t *testing.T) {
	t.Parallel()
	for name, grace := range map[string]time.Duration{"while it is asked to save": time.Hour, "after it did not save in time": time.Nanosecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.f.conf = strings.ReplaceAll(r.f.conf, "(null)", "85")
			job := r.start(t)
			in := intent(job, nil)
			in.Change = driver.Change{MemoryBytes: 64 << 20}
			r.settled(t, in)
			r.f.run(job.ID)
			in = intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: grace, Exit: 85})
			in.ID, in.Change = "back", driver.Change{}
			for range 3 {
				if _, err := r.d.Advance(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
			r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "OUT_OF_MEMORY", 0) })
			if job := r.job(t, job.ID); job.State != driver.Stopped {
				t.Errorf("it is %s, want %s", job.State, driver.Stopped)
			}
		})
	}
}

// What killed it the second time is what it was given before the first.
func TestAJobThatItsOwnerRunsAgainGetsItsMemoryBackToo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	in := intent(job, nil)
	in.Change = driver.Change{MemoryBytes: 64 << 20}
	r.settled(t, in)
	r.f.run(job.ID)
	r.job(t, job.ID)
	r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "FAILED", 1) })
	if job := r.job(t, job.ID); job.State != driver.Failed {
		t.Fatalf("it is %s", job.State)
	}
	if _, err := r.f.Run(t.Context(), command.Call{Name: "scontrol", Args: []string{"requeue", string(job.ID)}, Effect: true}); err != nil {
		t.Fatal(err)
	}
	r.job(t, job.ID)
	r.f.run(job.ID)
	r.job(t, job.ID)
	r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "OUT_OF_MEMORY", 0) })
	for range 6 {
		if job := r.job(t, job.ID); job.State.Ended() {
			t.Fatalf("it is %s", job.State)
		}
	}
	r.f.with(job.ID, func(j *fakeJob) {
		if j.state != "PENDING" || j.restarts != 2 || j.mem != 100 {
			t.Errorf("Slurm has %+v", j)
		}
	})
}

// judge is a hand that can be asked beforehand, as a broker's is.
type judge struct{ slurmctl.Commands }

func (judge) May(context.Context, string, slurmctl.Update) error { return nil }

func TestABrokerIsAskedToTakeBackLessMemoryAlone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change driver.Change
		want   driver.State
	}{
		{"less memory", driver.Change{MemoryBytes: 64 << 20}, driver.Stopped},
		{"another change", driver.Change{TimeLimit: time.Hour}, driver.MemoryExceeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(cfg *slurm.Config) { cfg.Actor = judge{slurmctl.Commands{Runner: cfg.Commands}} })
			job := r.start(t)
			in := intent(job, nil)
			in.Change = tc.change
			r.settled(t, in)
			r.f.run(job.ID)
			r.job(t, job.ID)
			r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "OUT_OF_MEMORY", 0) })
			if job := r.job(t, job.ID); job.State != tc.want {
				t.Errorf("it is %s, want %s", job.State, tc.want)
			}
		})
	}
}
