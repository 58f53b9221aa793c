package slurm_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

// The tests wait for a cluster most of the time, not for a CPU.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// rig is a driver on a fake Slurm.
type rig struct {
	f   *fake
	cfg slurm.Config
	d   *slurm.Driver
}

func TestTheDefaultPartitionIsTheOneThatGetsTheJobs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		site    bool
		watched []string
		gives   string
		want    string
	}{
		{"of a user's controller the first that is watched", false, []string{"night", "main"}, " Default=YES", "night"},
		{"else Slurm's", false, nil, " Default=YES", "main"},
		{"for everybody's jobs Slurm's", true, []string{"night", "main"}, " Default=YES", "main"},
		{"none where Slurm has none", true, nil, " Default=NO", ""},
	} {
		change := func(cfg *slurm.Config) { cfg.Partitions = c.watched }
		r := newRig(t, change)
		if c.site {
			r, _ = newSite(t, change)
		}
		r.f.gives = c.gives
		if got := r.d.Partition(t.Context()); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func newRig(t *testing.T, change func(*slurm.Config)) *rig {
	t.Helper()
	r := &rig{f: newFake(t)}
	r.cfg = slurm.Config{Dir: t.TempDir(), Commands: r.f, Parse: detect.Parse, Interval: 10 * time.Millisecond}
	if change != nil {
		change(&r.cfg)
	}
	r.open(t)
	t.Cleanup(func() {
		if err := r.d.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) open(t *testing.T) {
	t.Helper()
	var err error
	if r.d, err = slurm.New(t.Context(), r.cfg); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) reopen(t *testing.T) {
	t.Helper()
	if err := r.d.Close(); err != nil {
		t.Fatal(err)
	}
	r.open(t)
}

func spec() driver.Spec {
	return driver.Spec{Filename: "a.sh", Source: []byte("#!/bin/sh\n#SBATCH --comment='mine too'\ntrue\n")}
}

func (r *rig) start(t *testing.T) driver.Job {
	t.Helper()
	job, err := r.d.Start(t.Context(), "request", spec())
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (r *rig) job(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	job, err := r.d.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestASubmissionOfUnknownOutcomeIsLookedForAndNotRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.cut = func(c command.Call, after bool) error {
		if c.Name == "sbatch" && after {
			return fmt.Errorf("sbatch: %w", driver.ErrUnknown)
		}
		return nil
	}
	if _, err := r.d.Start(t.Context(), "request", spec()); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("Start: %v, want %v", err, driver.ErrUnknown)
	}
	r.reopen(t)
	found, err := r.d.Find(t.Context(), "request")
	job := r.start(t)
	if found != job.ID || err != nil {
		t.Errorf("whoever is to stop it finds %q, %v; want %s", found, err, job.ID)
	}
	if again := r.start(t); again.ID != job.ID || r.f.count("sbatch") != 1 {
		t.Errorf("jobs %s and %s after %d submissions, want one", job.ID, again.ID, r.f.count("sbatch"))
	}
	r.f.with(job.ID, func(j *fakeJob) {
		if !strings.HasPrefix(j.comment, "mine too pitchpipe-request=") {
			t.Errorf("comment %q, want the script's own and the marker", j.comment)
		}
	})
}

func TestASubmissionThatWasLostIsRepeatedAfterAQuietTime(t *testing.T) {
	t.Parallel()
	lost := func(c command.Call, after bool) error {
		if c.Name == "sbatch" && !after {
			return fmt.Errorf("sbatch: %w", driver.ErrUnknown)
		}
		return nil
	}
	r := newRig(t, nil)
	r.f.cut = lost
	for range 2 {
		if _, err := r.d.Start(t.Context(), "request", spec()); !errors.Is(err, driver.ErrUnknown) {
			t.Fatalf("Start: %v, want %v", err, driver.ErrUnknown)
		}
	}
	if n := r.f.count("sbatch"); n != 1 {
		t.Errorf("%d submissions while no one knows, want 1", n)
	}
	sought := func(id driver.RequestID, want error) {
		t.Helper()
		if job, err := r.d.Find(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("whoever is to stop it finds %q, %v; want %v", job, err, want)
		}
	}
	sought("request", driver.ErrUnknown)
	sought("another", driver.ErrNotFound)
	r.f.cut, r.cfg.Quiet = nil, time.Nanosecond
	r.reopen(t)
	sought("request", driver.ErrNotFound)
	if job := r.start(t); job.ID != "1" || r.f.count("sbatch") != 2 {
		t.Errorf("job %s after %d submissions, want 1 after 2", job.ID, r.f.count("sbatch"))
	}
}

func TestARefusedSubmissionFreesItsRequest(t *testing.T) {
	t.Parallel()
	for says, want := range map[string]error{
		"sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified":          driver.ErrDenied,
		"sbatch: error: Ask for a project first\nsbatch: error: Batch job submission failed: Unspecified error":           driver.ErrDenied,
		"sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Job violates accounting/QOS policy (job submit limit": driver.ErrNoRoom,
	} {
		r := newRig(t, nil)
		r.f.cut = func(c command.Call, _ bool) error {
			return &command.Failed{Call: c, Status: 1, Stderr: says, Cause: command.Cause(says, true)}
		}
		words, _, _ := strings.Cut(says, "\n")
		if _, err := r.d.Start(t.Context(), "request", spec()); !errors.Is(err, want) || !strings.Contains(err.Error(), words) {
			t.Fatalf("Start: %v, want %v with %q", err, want, words)
		}
		r.f.cut = nil
		if job := r.start(t); job.State != driver.Pending {
			t.Errorf("the corrected submission is %s, want %s", job.State, driver.Pending)
		}
	}
}

func intent(job driver.Job, cp *driver.Checkpoint) driver.Intent {
	return driver.Intent{
		ID: "intent", Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint, Change: driver.Change{Cores: 2}, Checkpoint: cp,
	}
}

// No one waits for what such a job would leave with.
func TestAnAttemptIsDiscardedWhereNoSaveWouldBeSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.run(job.ID)
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Nanosecond, Exit: 85})
	in.Discard = true
	if err := r.d.Check(t.Context(), in); err != nil {
		t.Errorf("Check: %v", err)
	}
	for _, want := range []driver.StepKind{driver.StepCheckpointing, driver.StepStopped, driver.StepChanged, driver.StepStarted} {
		if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != want {
			t.Fatalf("%+v, %v; want %s", step, err, want)
		}
	}
	// An owner's no counts as for any other intent.
	r.f.run(job.ID)
	r.f.with(job.ID, func(j *fakeJob) { j.noRequeue = true })
	in.ID, in.Attempt = "another", 2
	if _, err := r.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrDenied) || r.f.count("scontrol requeue") != 1 {
		t.Errorf("Advance of what may not be restarted: %v after %d requeues, want %v after one", err, r.f.count("scontrol requeue"), driver.ErrDenied)
	}
}

func TestAJobThatWouldEndByLeavingIsNotAskedTo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.run(job.ID)
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Exit: 85})
	if _, err := r.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "RequeueExitHold") {
		t.Errorf("Advance: %v, want %v that names RequeueExitHold", err, driver.ErrUnsupported)
	}
	if n := r.f.count("scancel"); n != 0 {
		t.Errorf("%d signals, want none", n)
	}
	// The administrator changes it while the controller runs, to and fro.
	for conf, want := range map[string]error{"RequeueExitHold = 80-90,99\n": nil, "RequeueExit = 85\n": nil, "RequeueExitHold = 84,86\n": driver.ErrUnsupported} {
		r.f.mu.Lock()
		r.f.conf = conf
		r.f.mu.Unlock()
		if err := r.d.Check(t.Context(), in); !errors.Is(err, want) {
			t.Errorf("Check where the cluster says %q: %v, want %v", conf, err, want)
		}
	}
}

// errCrash is what a step returns at which the controller dies.
var errCrash = errors.New("the controller dies here")

func TestAMoveGoesOnAfterACrashAtEachStep(t *testing.T) {
	t.Parallel()
	for step := range 12 {
		for _, discard := range []bool{false, true} {
			t.Run(fmt.Sprintf("crash at effect %d, discard %t", step, discard), func(t *testing.T) {
				t.Parallel()
				moveAcrossACrash(t, step, discard)
			})
		}
	}
}

func moveAcrossACrash(t *testing.T, step int, discard bool) {
	t.Helper()
	r := newRig(t, nil)
	job := r.start(t)
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.f.with(job.ID, func(j *fakeJob) { j.out = out })
	r.f.run(job.ID)
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
	in.Discard = discard
	seen := 0
	r.f.cut = func(c command.Call, after bool) error {
		if c.Name == "scancel" && after {
			if err := os.WriteFile(out, []byte("saved\n"), 0o600); err != nil {
				t.Error(err)
			}
		}
		if seen++; seen == step+1 {
			return errCrash
		}
		return nil
	}
	var last driver.Step
	for range 30 {
		var err error
		last, err = r.d.Advance(t.Context(), in)
		if errors.Is(err, errCrash) {
			r.reopen(t)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if last.Kind.Done() {
			break
		}
	}
	if last.Kind != driver.StepStarted {
		t.Fatalf("step %+v, want %s", last, driver.StepStarted)
	}
	r.f.run(job.ID)
	got := r.job(t, job.ID)
	if len(got.Attempts) != 2 || got.Attempts[1].Intent != in.ID || got.Change.Cores != 2 || got.Attempt != 2 {
		t.Errorf("attempt %d of %+v, want the second with the change", got.Attempt, got.Attempts)
	}
	r.f.with(job.ID, func(j *fakeJob) {
		if j.restarts != 1 || j.cores != 2 {
			t.Errorf("%d restarts with %d cores, want 1 with 2", j.restarts, j.cores)
		}
	})
	if n := r.f.count("scancel"); discard && n > 0 {
		t.Errorf("%d signals to what is discarded, want none", n)
	}
}

func TestAJobThatEndsWhileItIsMovedStaysEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.run(job.ID)
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"})
	if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepCheckpointing {
		t.Fatalf("step %+v (%v), want %s", step, err, driver.StepCheckpointing)
	}
	r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "COMPLETED", 0) })
	for range 2 {
		if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepFinished {
			t.Errorf("step %+v (%v), want %s", step, err, driver.StepFinished)
		}
	}
	if n := r.f.count("scontrol requeue"); n != 0 {
		t.Errorf("%d requeues of a job that ended, want none", n)
	}
}

func TestAJobThatSlurmctldForgotIsRemembered(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.run(job.ID)
	r.f.with(job.ID, func(j *fakeJob) { r.f.end(j, "FAILED", 7) })
	want := r.job(t, job.ID)
	r.f.mu.Lock()
	delete(r.f.jobs, 1)
	r.f.mu.Unlock()
	r.reopen(t)
	if got := r.job(t, job.ID); got.State != driver.Failed || got.ExitCode != 7 || !got.Ended.Equal(want.Ended) || got.Fingerprint == "" {
		t.Errorf("remembered %+v, want %+v", got, want)
	}
	jobs, err := r.d.List(t.Context())
	if err != nil || len(jobs) != 1 {
		t.Errorf("%d jobs (%v), want 1", len(jobs), err)
	}
}

func TestAWatchBreaksWhereSqueueFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events, err := r.d.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Job != job.ID {
		t.Errorf("event %+v, want one of job %s", e, job.ID)
	}
	r.f.run(job.ID)
	if e := <-events; e.Job != job.ID {
		t.Errorf("event %+v, want one of the change of job %s", e, job.ID)
	}
	r.f.mu.Lock()
	r.f.user = "x|y"
	r.f.jobs[1].state = "no state"
	r.f.mu.Unlock()
	for range events {
	}
	if ctx.Err() != nil {
		t.Error("the channel stayed open")
	}
}

func TestConfigurationThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]slurm.Config{
		"no directory": {Parse: detect.Parse},
		"no parser":    {Dir: t.TempDir()},
		"a partition that would be two": {
			Dir: t.TempDir(), Parse: detect.Parse, Partitions: []string{"a,b"},
		},
	} {
		if d, err := slurm.New(t.Context(), cfg); !errors.Is(err, slurm.ErrConfig) {
			t.Errorf("%s: %v (%v), want %v", name, d, err, slurm.ErrConfig)
		}
	}
}
