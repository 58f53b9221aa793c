package slurm_test

import (
	"errors"
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

func TestWhatTheOwnerChangesIsKeptByTheNextIntent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.with(job.ID, func(j *fakeJob) { j.mem, j.limit = 600, 30 })
	job = r.job(t, job.ID)
	if job.Resources.MemoryBytes != 600<<20 || job.Resources.TimeLimit != 30*time.Minute {
		t.Errorf("resources %+v, want what the owner changed them to", job.Resources)
	}
	r.f.run(job.ID)
	r.f.with(job.ID, func(j *fakeJob) { j.limit = 90 }) // an administrator extends it
	job = r.job(t, job.ID)
	if job.Resources.TimeLimit != 90*time.Minute {
		t.Errorf("limit %v, want the extended one", job.Resources.TimeLimit)
	}
	r.f.with(job.ID, func(j *fakeJob) { j.state, j.restarts = "PENDING", 1 })
	job = r.job(t, job.ID)
	in := intent(job, nil)
	for range 5 {
		step, err := r.d.Advance(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if step.Kind.Done() {
			break
		}
	}
	r.f.with(job.ID, func(j *fakeJob) {
		if j.cores != 2 || j.mem != 600 || j.limit != 90 {
			t.Errorf("%d cores, %d MiB, %d minutes, want 2, 600, 90", j.cores, j.mem, j.limit)
		}
	})
	r.f.run(job.ID)
	if got := r.job(t, job.ID).Resources.Cores; got != 1 {
		t.Errorf("the owner asks for %d cores, want 1: two are ours", got)
	}
}

// The controller was dead while he changed it, until the wait was over.
func TestWhatTheOwnerChangesBeforeAnIntentCanAnswerIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.conf = "RequeueExitHold = 85\n"
	r.reopen(t)
	job := r.start(t)
	r.f.with(job.ID, func(j *fakeJob) { j.mem, j.limit = 512, 20 })
	r.job(t, job.ID)
	r.f.run(job.ID)
	leave := func(id string, restarts int) driver.Step {
		in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Exit: 85})
		in.ID = id
		if _, err := r.d.Advance(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		r.f.with(job.ID, func(j *fakeJob) { j.state, j.restarts, j.exit, j.held = "SPECIAL_EXIT", restarts, 85, true })
		step, err := r.d.Advance(t.Context(), in)
		if err != nil || step.Kind != driver.StepStopped {
			t.Fatalf("%s: %+v, %v; want %s", id, step, err, driver.StepStopped)
		}
		if restarts == 1 {
			r.f.with(job.ID, func(j *fakeJob) { j.mem, j.limit = 600, 15 })
			r.f.run(job.ID)
		}
		return r.settled(t, in)
	}
	if step := leave("late", 1); step.Kind != driver.StepSuperseded {
		t.Fatalf("step %+v, want %s", step, driver.StepSuperseded)
	}
	if step := leave("next", 2); step.Kind != driver.StepStarted {
		t.Fatalf("step %+v, want %s", step, driver.StepStarted)
	}
	r.f.with(job.ID, func(j *fakeJob) {
		if j.cores != 2 || j.mem != 600 || j.limit != 15 {
			t.Errorf("%d cores, %d MiB, %d minutes; want 2, and 600 and 15 as its owner said", j.cores, j.mem, j.limit)
		}
	})
}

func TestALimitThatTheOwnerSetsAfterAChangeIsHisAndTheRestTheIntents(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.with(job.ID, func(j *fakeJob) { j.limit = 20 })
	in := intent(r.job(t, job.ID), nil)
	if step, err := r.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepChanged {
		t.Fatalf("%+v, %v; want %s", step, err, driver.StepChanged)
	}
	r.f.with(job.ID, func(j *fakeJob) { j.limit = 15 })
	r.f.run(job.ID)
	if step := r.settled(t, in); step.Kind != driver.StepStarted {
		t.Errorf("step %+v, want %s", step, driver.StepStarted)
	}
	job = r.job(t, job.ID)
	if a := job.Attempts[0]; job.Resources.TimeLimit != 15*time.Minute || a.Change.Cores != 2 || a.Intent != in.ID {
		t.Errorf("limit %v, attempt %+v; want 15 minutes, and two cores of the intent", job.Resources.TimeLimit, a)
	}
}

// Its processes take seconds to go, and its node revokes the attempt when they have gone.
func TestTheNextAttemptDoesNotBeginInTheSecondInWhichTheLastWasRevoked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.conf = "RequeueExitHold = 85\n"
	r.reopen(t)
	job := r.start(t)
	r.f.run(job.ID)
	in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Exit: 85})
	if _, err := r.d.Advance(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	r.f.with(job.ID, func(j *fakeJob) { j.state, j.restarts = "COMPLETING", 1 })
	if got := r.job(t, job.ID); got.Attempts[0].Ended.IsZero() {
		t.Fatalf("attempts %+v; want the first to count as ended", got.Attempts)
	}
	time.Sleep(2100 * time.Millisecond)
	r.f.with(job.ID, func(j *fakeJob) { j.state, j.exit, j.held = "SPECIAL_EXIT", 85, true })
	if step := r.settled(t, in); step.Kind != driver.StepStarted {
		t.Fatalf("step %+v, want %s", step, driver.StepStarted)
	}
	if got := r.f.last("scontrol update"); !strings.Contains(got, "StartTime=now+2") && !strings.Contains(got, "StartTime=now+3") {
		t.Errorf("%q; want a start in two seconds", got)
	}
}

func TestALimitThatAppearsAtTheStartIsNotTheOwners(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.run(job.ID)
	r.f.with(job.ID, func(j *fakeJob) { j.limit = 60 })
	if got := r.job(t, job.ID).Resources.TimeLimit; got != 0 {
		t.Errorf("limit %v, want none", got)
	}
}

// unknown has sbatch have its effect, and no one learn of it.
func unknown(c command.Call, after bool) error {
	if c.Name == "sbatch" && after {
		return &command.Failed{Call: c, Status: -1, Cause: driver.ErrUnknown}
	}
	return nil
}

func TestASubmissionThatMayBeForgottenIsNeverRepeated(t *testing.T) {
	t.Parallel()
	for name, conf := range map[string]string{"long ago": "MinJobAge = 1 sec\n", "for how long is not known": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *slurm.Config) { c.Quiet = time.Nanosecond })
			r.f.conf = conf
			r.reopen(t)
			r.f.cut = unknown
			if _, err := r.d.Start(t.Context(), "request", spec()); !errors.Is(err, driver.ErrUnknown) {
				t.Fatalf("Start: %v, want %v", err, driver.ErrUnknown)
			}
			r.f.mu.Lock()
			clear(r.f.jobs) // it ran, and is forgotten
			r.f.mu.Unlock()
			time.Sleep(1100 * time.Millisecond)
			if _, err := r.d.Start(t.Context(), "request", spec()); !errors.Is(err, driver.ErrUnknown) {
				t.Errorf("Start: %v, want %v", err, driver.ErrUnknown)
			}
			if n := r.f.count("sbatch"); n != 1 {
				t.Errorf("%d submissions, want 1", n)
			}
		})
	}
}

func TestASubmittedJobInAnotherPartitionIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *slurm.Config) { c.Quiet = time.Nanosecond; c.Partitions = []string{"main"} })
	r.f.cut = unknown
	if _, err := r.d.Start(t.Context(), "request", spec()); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("Start: %v, want %v", err, driver.ErrUnknown)
	}
	r.f.with("1", func(j *fakeJob) { j.partition = "night" })
	if job := r.start(t); job.ID != "1" || job.State != driver.Pending || r.f.count("sbatch") != 1 {
		t.Errorf("job %s is %s after %d submissions, want 1 pending after one", job.ID, job.State, r.f.count("sbatch"))
	}
}

func TestWhatTheOwnerHoldsIsNotReleased(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		exit int
		want int // releases
	}{{"it left with another status", 86, 0}, {"it saved late", 85, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.f.conf = "RequeueExitHold = 85,86\n"
			r.reopen(t)
			job := r.start(t)
			r.f.run(job.ID)
			in := intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Nanosecond, Exit: 85})
			for range 5 {
				step, err := r.d.Advance(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				if step.Kind.Done() {
					break
				}
			}
			r.f.with(job.ID, func(j *fakeJob) { j.state, j.restarts, j.exit, j.held = "SPECIAL_EXIT", 1, c.exit, true })
			for range 2 {
				r.job(t, job.ID)
			}
			if n := r.f.count("scontrol release"); n != c.want {
				t.Errorf("%d releases, want %d", n, c.want)
			}
		})
	}
}

func TestAJobIsShownAsHeldWhereItLeftUnaskedAndNotWhereAPersonHoldsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		state string
		held  bool
		asked bool
		want  string
	}{
		{"it left unasked", "SPECIAL_EXIT", true, false, "it left with status 85 unasked (RequeueExitHold)"},
		{"it saved for an intent that was given up", "SPECIAL_EXIT", true, true, ""},
		{"a person holds it", "PENDING", true, false, ""},
		{"a person requeued and held it", "REQUEUE_HOLD", true, false, ""},
		{"it was released", "PENDING", false, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.f.conf += "RequeueExitHold = 85\n"
			job := r.start(t)
			r.f.run(job.ID)
			if c.asked {
				r.settled(t, intent(r.job(t, job.ID), &driver.Checkpoint{Signal: "USR1", Grace: time.Nanosecond, Exit: 85}))
			}
			r.f.with(job.ID, func(j *fakeJob) { j.state, j.restarts, j.exit, j.held = c.state, 1, 85, c.held })
			if got := r.job(t, job.ID); got.State != driver.Pending || got.Held != c.want {
				t.Errorf("the job is %s, held %q; want %s, %q", got.State, got.Held, driver.Pending, c.want)
			}
		})
	}
}

func TestAScriptThatSaysWhenToBeginIsNotDelayed(t *testing.T) {
	t.Parallel()
	for option, passed := range map[string]bool{
		"--begin=now+1hour": false, "-b now+1hour": false, "--job-name=b": true, "--job-name=b\ntrue\n#SBATCH --begin=now+1hour": true, // none after the first command
	} {
		r := newRig(t, func(c *slurm.Config) { c.Parse = detect.For("slurm") })
		s := driver.Spec{Filename: "a.sh", Source: []byte("#!/bin/sh\n#SBATCH " + option + "\ntrue\n"), NotBefore: time.Now().Add(time.Hour)}
		if _, err := r.d.Start(t.Context(), "request", s); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(r.f.last("sbatch"), "--begin="); got != passed {
			t.Errorf("%s: our own --begin %t, want %t", option, got, passed)
		}
	}
}

func TestOnlyAMarkedJobGetsVariables(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *slurm.Config) { c.TaskProlog = true })
	job := r.start(t)
	if err := r.d.Close(); err != nil {
		t.Fatal(err)
	}
	r.cfg.Dir = filepath.Join(t.TempDir(), "another") // which has not submitted it
	if err := os.Mkdir(r.cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.open(t)
	in := intent(r.job(t, job.ID), nil)
	in.Change = driver.Change{Env: map[string]string{"RATE": "1"}}
	if err := r.d.Check(t.Context(), in); !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "pitchpipe run") {
		t.Errorf("not marked: %v, want %v and a remedy", err, driver.ErrUnsupported)
	}
	r.f.with(job.ID, func(j *fakeJob) { j.admin = "site pitchpipe:1:RATE:" })
	if err := r.d.Check(t.Context(), in); err != nil {
		t.Errorf("marked: %v", err)
	}
	r.f.with(job.ID, func(j *fakeJob) { j.admin, j.comment = "", j.comment+" "+slurmctl.Marked })
	if err := r.d.Check(t.Context(), in); err != nil {
		t.Errorf("whose owner says that he marked it: %v", err)
	}
}

func TestAMarkThatTheScriptKeepsFromItsJobIsNone(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]error{
		"--export=NONE": driver.ErrUnsupported, "--export PATH,HOME": driver.ErrUnsupported, "--export=ALL": nil, "--export='ALL,X=1'": nil,
		"-c 1 --export=NIL": driver.ErrUnsupported, "--comment=none": nil,
	} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(c *slurm.Config) { c.TaskProlog, c.Parse = true, detect.For("slurm") })
			s := spec()
			s.Source = []byte("#!/bin/sh\n#SBATCH " + option + "\n#TUNE knob rate env=RATE values=1,2 default=1\ntrue\n")
			job, err := r.d.Start(t.Context(), "request", s)
			if err != nil {
				t.Fatal(err)
			}
			in := intent(r.job(t, job.ID), nil)
			in.Change = driver.Change{Env: map[string]string{"RATE": "1"}}
			if err := r.d.Check(t.Context(), in); !errors.Is(err, want) {
				t.Errorf("Check: %v, want %v", err, want)
			}
			r.f.with(job.ID, func(j *fakeJob) { j.admin = "pitchpipe:1:-" })
			if err := r.d.Check(t.Context(), in); err != nil {
				t.Errorf("where the plugin marked it: %v", err)
			}
			file, err := detect.For("slurm")(s.Filename, s.Source, nil)
			if err != nil {
				t.Fatal(err)
			}
			id, err := slurm.Submit(t.Context(), r.f, file, s)
			if err != nil {
				t.Fatal(err)
			}
			r.f.with(id, func(j *fakeJob) {
				if slurmctl.Says(j.comment, slurmctl.Marked) != (want == nil) {
					t.Errorf("submitted with the comment %q", j.comment)
				}
			})
		})
	}
}

func TestAJobThatWouldNotGetItsVariablesIsNotSubmitted(t *testing.T) {
	t.Parallel()
	for option, want := range map[string]error{"--export=NONE": driver.ErrInvalid, "--export=PATH": driver.ErrInvalid, "--export=ALL": nil, "--comment=none": nil} {
		r := newRig(t, nil)
		s := spec()
		s.Source, s.Env = []byte("#!/bin/sh\n#SBATCH "+option+"\ntrue\n"), map[string]string{"LR": "0.1"}
		if _, err := r.d.Start(t.Context(), "request", s); !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "keeps LR from its job") {
			t.Errorf("%s: %v, want %v", option, err, want)
		}
	}
}

func TestAnAnswerOfSbatchThatNoOneKnowsKeepsItsRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.f.cut = func(c command.Call, after bool) error {
		if c.Name != "sbatch" || !after {
			return nil
		}
		const says = "sbatch: error: something that no one has seen"
		return &command.Failed{Call: c, Status: 1, Stderr: says, Cause: command.Cause(says, true)}
	}
	if _, err := r.d.Start(t.Context(), "request", spec()); !errors.Is(err, driver.ErrUnknown) {
		t.Fatalf("Start: %v, want %v", err, driver.ErrUnknown)
	}
	if job := r.start(t); job.ID != "1" || r.f.count("sbatch") != 1 {
		t.Errorf("job %s after %d submissions, want 1 after one", job.ID, r.f.count("sbatch"))
	}
}

func TestSettingsAreThereBeforeAnAttemptIsCreditedWithThem(t *testing.T) {
	t.Parallel()
	var steps []string
	r := newRig(t, func(c *slurm.Config) {
		c.TaskProlog = true
		c.AfterStep = func(step string) { steps = append(steps, step) }
	})
	job := r.start(t)
	in := intent(job, nil)
	in.Change = driver.Change{Env: map[string]string{"RATE": "1"}}
	steps = nil
	if _, err := r.d.Advance(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if written, credited := slices.Index(steps, "settings"), slices.Index(steps, "changing"); written < 0 || credited < written {
		t.Errorf("steps %v, want the settings before the change is durable", steps)
	}
}
