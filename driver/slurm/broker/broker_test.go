package broker_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/slurmctl"
)

func TestAWholeMove(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.waits(t)
	u := size(2, 100, 60)
	u.Start = start(2 * time.Minute).Start
	if err := r.client.Update(t.Context(), "7", u); err != nil {
		t.Fatal(err)
	}
	if err := r.client.Update(t.Context(), "7", start(0)); err != nil {
		t.Fatal(err)
	}
	// Back to what the owner asked for, which is not what squeue shows now.
	if err := r.client.Update(t.Context(), "7", size(4, 100, 60)); err != nil {
		t.Fatal(err)
	}
	if err := r.client.Update(t.Context(), "7", size(5, 0, 0)); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("more than he asked for: %v, want %v", err, driver.ErrDenied)
	}
	want := []string{
		"signal 7 SIGUSR1", "requeue 7", "update 7 NumCPUs=2 CpusPerTask=2 MinCPUsNode=2 MinMemoryNode=100 TimeLimit=60 StartTime=now+120",
		"update 7 StartTime=now", "update 7 NumCPUs=4 CpusPerTask=4 MinCPUsNode=4 MinMemoryNode=100 TimeLimit=60",
	}
	if got := r.f.did(); !slices.Equal(got, want) {
		t.Errorf("done: %q, want %q", got, want)
	}
	entries := r.entries(t)
	if len(entries) != 6 {
		t.Fatalf("%d lines of the audit, want 6", len(entries))
	}
	moved, refused := entries[2], entries[5]
	if !moved.Allowed || moved.Verb != "update" || moved.User != "alice" || moved.Before.Cores != 4 || moved.After.Cores != 2 || moved.Detail != "start in 2m0s" ||
		moved.Peer != uint32(os.Geteuid()) || moved.Job != "7" {
		t.Errorf("the change's line is %+v", moved)
	}
	if refused.Allowed || !strings.Contains(refused.Refused, "5 cores are more than the 4") {
		t.Errorf("the refusal's line is %+v", refused)
	}
}

func TestARestartedBrokerKnowsWhatTheOwnerAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.waits(t)
	if err := r.client.Update(t.Context(), "7", size(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	r.restart(t)
	if err := r.client.Update(t.Context(), "7", size(4, 0, 0)); err != nil {
		t.Errorf("back to his own: %v", err)
	}
	if err := r.client.Update(t.Context(), "7", size(5, 0, 0)); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("more: %v, want %v", err, driver.ErrDenied)
	}
}

func TestTheOwnersNewWordIsTheCeiling(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.waits(t)
	if err := r.client.Update(t.Context(), "7", size(2, 0, 0)); err != nil {
		t.Fatal(err)
	}
	r.f.with(func(j *fakeJob) { j.cores = 3 })
	if err := r.client.Update(t.Context(), "7", size(4, 0, 0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "more than the 3") {
		t.Errorf("%v, want that 3 is the ceiling", err)
	}
}

func TestAPartitionMayAllowMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) { c.Above = []string{"main"} })
	r.waits(t)
	if err := r.client.Update(t.Context(), "7", size(8, 900, 600)); err != nil {
		t.Errorf("more in a partition that allows it: %v", err)
	}
}

func TestASizeCanBeAskedAboutWhileTheJobRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if err := r.client.May(t.Context(), "7", size(2, 0, 0)); err != nil {
		t.Errorf("fewer cores: %v", err)
	}
	if err := r.client.May(t.Context(), "7", size(5, 0, 0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "more than the 4") {
		t.Errorf("more cores: %v, want %v", err, driver.ErrDenied)
	}
	if err := r.client.May(t.Context(), "7", start(0)); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a start: %v, want %v", err, driver.ErrInvalid)
	}
	// What alice uses, cpu=6(3), are cores of this job.
	r.f.mu.Lock()
	r.f.config, r.f.assoc, r.f.job.cores = "AccountingStorageEnforce = limits\n", limited, 3
	r.f.mu.Unlock()
	if err := r.client.May(t.Context(), "7", size(2, 0, 0)); err != nil {
		t.Errorf("fewer cores within the limits: %v", err)
	}
	if did := r.f.did(); len(did) > 0 {
		t.Errorf("done all the same: %q", did)
	}
}

func TestRestartsHaveAnEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) { c.Restarts = 2 })
	for range 2 {
		r.waits(t)
		r.f.with(func(j *fakeJob) { j.state = "RUNNING" })
	}
	if err := r.client.Signal(t.Context(), "7", "USR1"); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "in 2 attempts, the limit") {
		t.Errorf("a third: %v, want %v", err, driver.ErrDenied)
	}
}

func TestAnAttemptThatWasChangedHereMayBeDiscarded(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) { c.Restarts = 2 })
	// runs lets the job begin, as an attempt that was changed while it waited or not.
	runs := func(changed bool) {
		if changed {
			if err := r.client.Update(t.Context(), "7", size(2, 0, 0)); err != nil {
				t.Fatal(err)
			}
		}
		r.f.with(func(j *fakeJob) { j.state = "RUNNING" })
	}
	r.f.with(func(j *fakeJob) { j.state = "PENDING" })
	runs(true) // before its first attempt
	r.restart(t)
	if err := r.client.Do(t.Context(), slurmctl.Discard, "7"); err != nil {
		t.Fatal(err)
	}
	if err := r.client.Update(t.Context(), "7", start(0)); err != nil {
		t.Errorf("the wait is of our making: %v", err)
	}
	runs(true)
	r.f.mu.Lock()
	r.f.fail = driver.ErrUnknown
	r.f.mu.Unlock()
	if err := r.client.Do(t.Context(), slurmctl.Discard, "7"); !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("an outcome that is unknown: %v, want %v", err, driver.ErrUnknown)
	}
	if err := r.client.Do(t.Context(), slurmctl.Discard, "7"); err != nil {
		t.Errorf("the repeat, which counts once: %v", err)
	}
	runs(false) // by itself, as where the controller did not come back
	if err := r.client.Do(t.Context(), slurmctl.Discard, "7"); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "the broker changed nothing of this attempt") {
		t.Errorf("an attempt that was not changed: %v, want %v", err, driver.ErrDenied)
	}
	r.f.with(func(j *fakeJob) { j.state = "PENDING" })
	runs(true)
	if err := r.client.Do(t.Context(), slurmctl.Discard, "7"); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "in 2 attempts, the limit") {
		t.Errorf("a third: %v, want %v", err, driver.ErrDenied)
	}
	for i, e := range r.entries(t) {
		if e.Verb == "discard" && e.Detail != "its work since its last checkpoint is lost" {
			t.Errorf("line %d of the audit is %+v, want what a discard is", i, e)
		}
	}
}

func TestWhatIsRepeatedCountsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) { c.Restarts = 1 })
	if err := errors.Join(r.client.Signal(t.Context(), "7", "SIGUSR1"), r.client.Signal(t.Context(), "7", "SIGUSR1")); err != nil {
		t.Fatal(err)
	}
	r.f.mu.Lock()
	r.f.fail = driver.ErrUnknown
	r.f.mu.Unlock()
	if err := r.client.Do(t.Context(), slurmctl.Requeue, "7"); !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("an unknown outcome: %v, want %v", err, driver.ErrUnknown)
	}
	if err := r.client.Do(t.Context(), slurmctl.Requeue, "7"); err != nil {
		t.Errorf("the repeat: %v", err)
	}
}

func TestAJobThatLeftForUsIsLetGo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if err := r.client.Signal(t.Context(), "7", "SIGUSR1"); err != nil {
		t.Fatal(err)
	}
	r.f.with(func(j *fakeJob) {
		j.state, j.reason, j.exit, j.restarts, j.eligible = "SPECIAL_EXIT", "JobHeldUser", 85, 1, time.Time{}
	})
	if err := errors.Join(r.client.Update(t.Context(), "7", start(time.Minute)), r.client.Do(t.Context(), slurmctl.Release, "7")); err != nil {
		t.Error(err)
	}
	r.f.with(func(j *fakeJob) { j.reason = "JobHeldAdmin" })
	if err := r.client.Do(t.Context(), slurmctl.Release, "7"); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("what an administrator holds: %v, want %v", err, driver.ErrDenied)
	}
}

func TestWhenAWaitMayBeEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.with(func(j *fakeJob) { j.state, j.comment = "PENDING", "mine "+slurmctl.HeadStart })
	if err := r.client.Update(t.Context(), "7", start(0)); err != nil {
		t.Errorf("a job whose owner submitted it with a head start: %v", err)
	}
	r.f.with(func(j *fakeJob) { j.state, j.comment = "RUNNING", "" })
	r.waits(t)
	r.f.with(func(j *fakeJob) { j.eligible = time.Now().Add(24 * time.Hour) })
	if err := r.client.Update(t.Context(), "7", start(0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "its owner has it begin at") {
		t.Errorf("a begin that its owner moved: %v, want %v", err, driver.ErrDenied)
	}
}

func TestAnotherJobUnderTheSameNumber(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.with(func(j *fakeJob) { j.state = "PENDING" })
	if err := r.client.Update(t.Context(), "7", size(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	// slurmctld began to count again.
	r.f.with(func(j *fakeJob) { j.submitted, j.cores = j.submitted.Add(time.Hour), 2 })
	if err := r.client.Update(t.Context(), "7", size(4, 0, 0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "more than the 2") {
		t.Errorf("%v, want that 2 is the ceiling", err)
	}
}

func TestWhatCannotBeWrittenDownIsNotDone(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"jobs", "audit.jsonl"} {
		r := newRig(t, nil)
		path := filepath.Join(r.cfg.Dir, what)
		// A full disk, which root does not pass either.
		if err := errors.Join(os.RemoveAll(path), os.Symlink("/dev/full/x", path)); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Signal(t.Context(), "7", "SIGUSR1"); !errors.Is(err, driver.ErrTransient) {
			t.Errorf("%s: %v, want %v", what, err, driver.ErrTransient)
		}
		if did := r.f.did(); len(did) > 0 {
			t.Errorf("%s: done all the same: %q", what, did)
		}
	}
}

func TestWhereThereIsNoPluginTheScriptCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *broker.Config) { c.Scripts = true })
	r.f.with(func(j *fakeJob) { j.admin, j.script = "", "#!/bin/sh\nSECRET=1\n" })
	script, err := r.client.Script(t.Context(), "7")
	if err != nil || string(script) != "#!/bin/sh\n" {
		t.Errorf("the script of a job without a stanza is %q (%v), want its first line", script, err)
	}
	if err := r.client.Signal(t.Context(), "7", "SIGUSR1"); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("without a stanza: %v, want %v", err, driver.ErrDenied)
	}
	r.f.with(func(j *fakeJob) { j.script = "#!/bin/sh\n#TUNE mode=apply\ntrue\n" })
	script, err = r.client.Script(t.Context(), "7")
	if err != nil || string(script) != "#!/bin/sh\n#TUNE mode=apply\ntrue\n" {
		t.Errorf("the script of a job with a stanza is %q (%v)", script, err)
	}
	if err := r.client.Signal(t.Context(), "7", "SIGUSR1"); err != nil {
		t.Errorf("with a stanza: %v", err)
	}
}

func TestAStanzaInTheCommentCountsOnlyWhereThereIsNoPlugin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scripts bool
		want    error
	}{
		"with the plugin":   {false, driver.ErrDenied},
		"where it has none": {true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(cfg *broker.Config) { cfg.Scripts = c.scripts })
			r.f.with(func(j *fakeJob) {
				j.admin, j.script, j.comment = "", "#!/bin/sh\ntrue\n", "theirs #TUNE mode=apply #TUNE knob cores values=1,2"
			})
			if err := r.client.Signal(t.Context(), "7", "SIGUSR1"); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

func TestScriptsOfMarkedJobsAreHandedOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.with(func(j *fakeJob) { j.script = "#!/bin/sh\ntrue\n" })
	if script, err := r.client.Script(t.Context(), "7"); err != nil || string(script) != "#!/bin/sh\ntrue\n" {
		t.Errorf("the script is %q (%v)", script, err)
	}
	r.f.with(func(j *fakeJob) { j.admin = "" })
	if _, err := r.client.Script(t.Context(), "7"); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("the script of a job without a mark: %v, want %v", err, driver.ErrDenied)
	}
}

// restart ends the broker and starts another on the same state.
func (r *rig) restart(t *testing.T) {
	t.Helper()
	r.stop()
	r.stop = r.serve(t)
}
