package broker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/slurmctl"
)

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	ctx := func(t *testing.T) context.Context { t.Helper(); return t.Context() }
	signal := func(t *testing.T, r *rig) error { t.Helper(); return r.client.Signal(ctx(t), "7", "SIGUSR1") }
	requeue := func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Requeue, "7") }
	discard := func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Discard, "7") }
	update := func(u slurmctl.Update) func(*testing.T, *rig) error {
		return func(t *testing.T, r *rig) error { t.Helper(); return r.client.Update(ctx(t), "7", u) }
	}
	rerun := func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Rerun, "7") }
	release := func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Release, "7") }
	waiting := func(j *fakeJob) { j.state = "PENDING" }
	nothing := func(*fakeJob) {}
	for _, c := range []struct {
		name  string
		job   func(*fakeJob)
		ask   func(*testing.T, *rig) error
		err   error
		words string
	}{
		{"a job that is not there", func(j *fakeJob) { j.gone = true }, signal, driver.ErrNotFound, ""},
		{"what is no number of a job", nothing, func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Requeue, "7 8") }, driver.ErrInvalid, "named by its number"},
		{"a task of which there are two", nothing, func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Requeue, "7_1_2") }, driver.ErrInvalid, "named by its number"},
		{"a set of tasks", nothing, func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Requeue, "7_[1-2]") }, driver.ErrInvalid, "named by its number"},
		{"a step", nothing, func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Requeue, "7.0") }, driver.ErrInvalid, "named by its number"},
		{"a task of no array", nothing, func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Requeue, "7_") }, driver.ErrInvalid, "named by its number"},
		{"a number that is none of Slurm's", nothing, func(t *testing.T, r *rig) error {
			t.Helper()
			return r.client.Do(ctx(t), slurmctl.Requeue, "12345678901")
		}, driver.ErrInvalid, "named by its number"},
		{"a task of a job that is no array", nothing, func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Requeue, "7_1") }, driver.ErrNotFound, ""},
		{"a job of root", func(j *fakeJob) { j.uid = 0 }, signal, driver.ErrDenied, "root's jobs are not touched"},
		{"a job that has ended", func(j *fakeJob) { j.state = "COMPLETED" }, requeue, driver.ErrConflict, "it has ended (completed)"},
		{"a job without a script", func(j *fakeJob) { j.noBatch = true }, signal, driver.ErrUnsupported, "no script to run again"},
		{"a task of an array by its own number", func(j *fakeJob) { j.array, j.task = "5", "1" }, signal, driver.ErrInvalid, "whose names are like 5_1"},
		{"an array by its number", func(j *fakeJob) { j.number, j.array, j.task = "9", "7", "1" }, signal, driver.ErrInvalid, "whose names are like 7_1"},
		{"a job whose comment says that it is a task", func(j *fakeJob) { j.extra = "ArrayJobId=5 ArrayTaskId=1 " }, signal, driver.ErrConflict, "array"},
		{"a component of a heterogeneous job", func(j *fakeJob) { j.leader = "5" }, signal, driver.ErrUnsupported, "heterogeneous"},
		{"a job whose comment says that it is a component", func(j *fakeJob) { j.extra = "HetJobId=5 " }, signal, driver.ErrConflict, "leader"},
		{"a job on two nodes", func(j *fakeJob) { j.nodes = 2 }, signal, driver.ErrUnsupported, "several nodes"},
		{"a job that the plugin did not accept", func(j *fakeJob) { j.admin = "" }, signal, driver.ErrDenied, "accepted no stanza"},
		{"a comment of another plugin", func(j *fakeJob) { j.admin = "billing:7" }, signal, driver.ErrDenied, "accepted no stanza"},
		{"a stanza that does not allow it", func(j *fakeJob) { j.script = "#!/bin/sh\n#TUNE observe\n" }, signal, driver.ErrDenied, "mode=apply"},
		{"a stanza that is not good", func(j *fakeJob) { j.script = "#!/bin/sh\n#TUNE mode=x\n" }, signal, driver.ErrDenied, "no good stanza"},
		{"a mark that stands in the owner's comment", func(j *fakeJob) { j.admin, j.comment = "", "x AdminComment="+accepted }, signal, driver.ErrDenied, "imitates"},
		{"a mark that stands in the name of the folder", func(j *fakeJob) { j.admin, j.folder = "", "/home/alice/x AdminComment="+accepted }, signal, driver.ErrDenied, "imitates"},
		{"a memory that stands in the owner's comment", func(j *fakeJob) { j.comment = "x MinMemoryCPU=100M" }, signal, driver.ErrDenied, "imitates"},
		{"another amount that stands there", func(j *fakeJob) { j.comment = "x MinMemoryCPU=900G" }, signal, driver.ErrConflict, "memory"},

		{"a signal that the stanza does not name", nothing, func(t *testing.T, r *rig) error { t.Helper(); return r.client.Signal(ctx(t), "7", "SIGKILL") }, driver.ErrDenied, "names SIGUSR1"},
		{"a signal to what waits", waiting, signal, driver.ErrConflict, "does not run"},
		{"a signal to what saves at none", func(j *fakeJob) { j.script = "#!/bin/sh\n#TUNE apply,nosave\n" }, signal, driver.ErrDenied, "no signal"},

		{"a signal against the owner's word", func(j *fakeJob) { j.comment = "mine " + slurmctl.Off }, signal, driver.ErrDenied, "its owner says pitchpipe:off"},
		{"a size against the owner's word", func(j *fakeJob) { waiting(j); j.comment = slurmctl.Off }, update(size(2, 0, 0)), driver.ErrDenied, "its owner says pitchpipe:off"},

		{"a requeue before the job was asked to save", nothing, requeue, driver.ErrDenied, "not asked to save"},
		{"a requeue against the owner's word", func(j *fakeJob) { j.noRequeue = true }, requeue, driver.ErrDenied, "--no-requeue"},
		{"a requeue of what cannot save", func(j *fakeJob) { j.script = "#!/bin/sh\n#TUNE apply,nosave\n" }, requeue, driver.ErrDenied, "no checkpoint"},

		{"a requeue of what leaves by itself", func(j *fakeJob) { j.script = "#!/bin/sh\n#TUNE apply,noknob\n" }, requeue, driver.ErrDenied, "exits by itself"},

		{"a discard of an attempt of its owner's own", nothing, discard, driver.ErrDenied, "the broker changed nothing of this attempt"},
		{"a discard against the owner's word", func(j *fakeJob) { j.noRequeue = true }, discard, driver.ErrDenied, "--no-requeue"},
		{"a discard of what he wants untuned", func(j *fakeJob) { j.comment = "mine " + slurmctl.Off }, discard, driver.ErrDenied, "its owner says pitchpipe:off"},
		{"a discard of what cannot save", func(j *fakeJob) { j.script = "#!/bin/sh\n#TUNE apply,nosave\n" }, discard, driver.ErrDenied, "no checkpoint"},
		{"a discard of what waits", waiting, discard, driver.ErrConflict, "does not run"},
		{"a discard of what has ended", func(j *fakeJob) { j.state = "COMPLETED" }, discard, driver.ErrConflict, "it has ended (completed)"},

		{"a change of what runs", nothing, update(size(2, 0, 0)), driver.ErrConflict, "does not wait"},
		{"more cores", waiting, update(size(5, 0, 0)), driver.ErrDenied, "5 cores are more than the 4"},
		{"more memory", waiting, update(size(0, 101, 0)), driver.ErrDenied, "101 MiB of memory are more than the 100"},
		{"memory by CPU that is more in all", waiting, update(slurmctl.Update{Memory: &slurmctl.Memory{Bytes: 26 << 20, PerCPU: true}}), driver.ErrDenied, "104 MiB"},
		{"a longer time limit", waiting, update(size(0, 0, 61)), driver.ErrDenied, "more than the 1h0m0s"},
		{"no time limit", waiting, update(slurmctl.Update{TimeLimit: new(time.Duration)}), driver.ErrDenied, "unlimited of time limit"},
		{"all memory", waiting, update(slurmctl.Update{Memory: &slurmctl.Memory{}}), driver.ErrDenied, "100 MiB"},
		{"no cores", waiting, update(slurmctl.Update{Cores: new(int)}), driver.ErrInvalid, "0 cores"},
		{"an odd amount", waiting, update(slurmctl.Update{Memory: &slurmctl.Memory{Bytes: 1000}}), driver.ErrInvalid, "whole MiB"},
		{"nothing", waiting, update(slurmctl.Update{}), driver.ErrInvalid, "nothing"},
		{"a time limit where there was none", func(j *fakeJob) { j.state, j.minutes = "PENDING", 0 }, update(size(0, 0, 5)), driver.ErrDenied, "no time limit"},
		{"cores that are no knob", func(j *fakeJob) { waiting(j); j.script = "#!/bin/sh\n#TUNE apply,noknob\n" }, update(size(2, 0, 0)), driver.ErrDenied, "does not allow 2 cores"},
		{"cores that the knob does not have", func(j *fakeJob) { waiting(j); j.script = "#!/bin/sh\n#TUNE apply,few\n" }, update(size(3, 0, 0)), driver.ErrDenied, "does not allow 3 cores"},
		{"less memory than the knob has", waiting, update(size(0, 59, 0)), driver.ErrDenied, "does not allow 59 MiB of memory, and its owner asked for 100"},
		{"less memory of a job that may not be restarted", func(j *fakeJob) { waiting(j); j.noRequeue = true }, update(size(0, 60, 0)), driver.ErrDenied, "--no-requeue"},
		{"less memory of what runs", nothing, update(size(0, 60, 0)), driver.ErrConflict, "does not wait"},
		{"less memory against the owner's word", func(j *fakeJob) { waiting(j); j.comment = slurmctl.Off }, update(size(0, 60, 0)), driver.ErrDenied, "its owner says pitchpipe:off"},
		{
			"less memory by fewer CPUs", func(j *fakeJob) { waiting(j); j.perCPU = true },
			update(size(2, 0, 0)), driver.ErrDenied, "does not allow 200 MiB of memory",
		},
		{"a shorter time limit", waiting, update(size(0, 0, 1)), driver.ErrDenied, "a time limit of 1m0s is less than the 1h0m0s"},
		{"a start that the owner set", waiting, update(start(0)), driver.ErrDenied, "only its owner decides"},
		{"a start long ahead", waiting, update(start(time.Hour)), driver.ErrInvalid, "at most 10m0s"},

		{"a rerun of what runs", nothing, rerun, driver.ErrConflict, "not killed for memory (RUNNING)"},
		{"a rerun of what waits", waiting, rerun, driver.ErrConflict, "not killed for memory (PENDING)"},
		{"a rerun of what has ended well", func(j *fakeJob) { j.state = "COMPLETED" }, rerun, driver.ErrConflict, "not killed for memory (COMPLETED)"},
		{"a rerun of what was cancelled", func(j *fakeJob) { j.state = "CANCELLED" }, rerun, driver.ErrConflict, "not killed for memory (CANCELLED)"},
		{"a rerun of what died of its owner's memory", func(j *fakeJob) { j.state = "OUT_OF_MEMORY" }, rerun, driver.ErrDenied, "it had the memory that its owner asked for"},
		{"a rerun of root's job", func(j *fakeJob) { j.state, j.uid = "OUT_OF_MEMORY", 0 }, rerun, driver.ErrDenied, "root's jobs are not touched"},
		{"a requeue of what was killed for memory", func(j *fakeJob) { j.state = "OUT_OF_MEMORY" }, requeue, driver.ErrConflict, "it has ended (out_of_memory)"},

		{"the release of what runs", nothing, release, driver.ErrDenied, "does not hold it"},
		{"the release of what its owner holds", waiting, release, driver.ErrDenied, "by its owner or the site stays"},
		{"the release of what was not asked to save", func(j *fakeJob) { j.state, j.exit, j.restarts = "SPECIAL_EXIT", 85, 1 }, release, driver.ErrDenied, "not asked to save"},
		{"the release of what left with another status", func(j *fakeJob) { j.state, j.exit, j.restarts = "SPECIAL_EXIT", 1, 1 }, release, driver.ErrDenied, "status 1"},
		{"a cancel", nothing, func(t *testing.T, r *rig) error { t.Helper(); return r.client.Do(ctx(t), slurmctl.Cancel, "7") }, driver.ErrDenied, "scancel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.f.with(c.job)
			err := c.ask(t, r)
			if !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v, want %v with the words %q", err, c.err, c.words)
			}
			if did := r.f.did(); len(did) > 0 {
				t.Errorf("done all the same: %q", did)
			}
		})
	}
}
