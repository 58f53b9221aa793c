package slurm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/slurm"
	"pitchpipe/test/slurmcluster"
)

// await waits for what must come, however loaded the machine is.
func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); pause(t.Context(), 100*time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatalf("waited in vain: %s", what)
}

func (b *bench) start(t *testing.T, be drivertest.Behaviour) driver.Job {
	t.Helper()
	job, err := b.d.Start(t.Context(), "request", b.job(t, be))
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (b *bench) get(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	job, err := b.d.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (b *bench) ended(t *testing.T, id driver.JobID) driver.Job {
	t.Helper()
	var job driver.Job
	await(t, "the end of job "+string(id), func() bool {
		job = b.get(t, id)
		return job.State.Ended()
	})
	return job
}

// says waits until the job's output holds the text.
func (b *bench) says(t *testing.T, id driver.JobID, text string) {
	t.Helper()
	await(t, "job "+string(id)+" says "+text, func() bool {
		data, err := os.ReadFile(filepath.Join(b.dir, "slurm-"+string(id)+".out"))
		return err == nil && strings.Contains(string(data), text)
	})
}

func (b *bench) intent(job driver.Job, c driver.Change) driver.Intent {
	return driver.Intent{
		ID: "intent", Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint, Change: c,
		Checkpoint: &driver.Checkpoint{Signal: "USR1", Grace: time.Minute, Done: "^saved$"},
	}
}

// drive advances until the step is reached or the intent is done. An error that
// the driver expects to pass is tried again, as a controller does: a slurmctld that
// has just started answers some questions before others.
func (b *bench) drive(t *testing.T, in driver.Intent, until driver.StepKind) driver.Step {
	t.Helper()
	var step driver.Step
	await(t, "step "+string(until), func() bool {
		var err error
		step, err = b.d.Advance(t.Context(), in)
		switch {
		case errors.Is(err, driver.ErrTransient), errors.Is(err, driver.ErrUnknown), errors.Is(err, driver.ErrNoRoom): // another job of the test waits
			t.Logf("Advance, to be tried again: %v", err)
			return false
		case err != nil:
			t.Fatalf("Advance: %v", err)
		}
		return step.Kind == until || step.Kind.Done()
	})
	return step
}

// many epochs of a saver last longer than a test needs before it hurries.
const many = 600

// saver says that it saved and goes on for n epochs.
func saver(n int) drivertest.Behaviour {
	return drivertest.Behaviour{Epochs: n, Epoch: 100 * time.Millisecond, Saves: true, SaysSaved: true, MemoryBytes: 64 << 20}
}

func stories() []story {
	return []story{
		{"memory limits are enforced, and what a job asks for is what it gets", memoryIsEnforced},
		{"cores and memory of a moved job are what the next attempt has, and its dependants wait for that", movedForReal},
		{"a job that asked for several CPUs runs on one where it is given one", loweredForReal},
		{"what Slurm says of a job overrides its script", saidToSlurm},
		{"a job whose owner forbids restarts is not asked to save", noRequeue},
		{"a discarded attempt gets SIGTERM and then SIGKILL, and its exit status counts for nothing", discardedForReal},
		{"an owner who holds or changes the waiting job meanwhile keeps the last word", ownersWord},
		{"a limit is lowered only where a kill for memory can be taken back, and no one hears of it", lowered},
		{"a job that is killed for less memory runs again with its owner's, once, whatever crashes", returnedOnce},
		{"jobs of several tasks are seen and not changed", observedOnly},
		{"each task of an array is tuned by itself and runs to its end once", tasksAreJobs},
		{"sbatch --wait and dependants of an array wait for all its tasks, the changed ones too", arrayIsWaitedFor},
		{"a task that waits is stopped by itself", waitingTaskStops},
		{"tasks of a user's array are tuned for a site, each with its own settings", tasksForASite},
		{"another user's jobs are not seen", othersUnseen},
		{"a listener runs as a step of the job", listenerIsAStep},
		{"a slurmctld that is gone is transient, and its restart loses nothing", slurmctldRestarts},
	}
}

func memoryIsEnforced(t *testing.T, c *cluster) {
	b := newBench(t, c, nil)
	for _, tt := range []struct {
		id       driver.RequestID
		use      int64
		want     driver.State
		reserved int64
	}{{"enough", 128 << 20, driver.Succeeded, 512 << 20}, {"over", 400 << 20, driver.MemoryExceeded, 128 << 20}} {
		be := drivertest.Behaviour{Epochs: 30, Epoch: 100 * time.Millisecond, MemoryBytes: tt.reserved, UseMemory: tt.use}
		job, err := b.d.Start(t.Context(), tt.id, b.job(t, be))
		if err != nil {
			t.Fatal(err)
		}
		if job = b.ended(t, job.ID); job.State != tt.want || job.Resources.MemoryBytes != tt.reserved {
			t.Errorf("%s: %s (%s) with %d bytes, want %s with %d", tt.id, job.State, job.Detail, job.Resources.MemoryBytes, tt.want, tt.reserved)
		}
	}
}

// A job that was submitted with --cpus-per-task keeps that many CPUs of its node
// unless it is asked otherwise, whatever else is said about its CPUs.
func loweredForReal(t *testing.T, c *cluster) {
	b := newBench(t, c, nil)
	be := saver(many)
	be.Cores = 3
	job := b.start(t, be)
	b.says(t, job.ID, "epoch 2/")
	in := b.intent(b.get(t, job.ID), driver.Change{Cores: 1})
	if step := b.drive(t, in, driver.StepStarted); step.Kind != driver.StepStarted || step.Attempt != 2 {
		t.Fatalf("step %+v, want %s in attempt 2", step, driver.StepStarted)
	}
	await(t, "the second attempt runs", func() bool { return b.get(t, job.ID).State == driver.Running })
	record := mustRun(t, b.c, slurmcluster.Alpha, "scontrol", "-d", "-o", "show", "job", string(job.ID))
	if m := regexp.MustCompile(`CPU_IDs=(\S+)`).FindStringSubmatch(record); m == nil || strings.ContainsAny(m[1], "-,") {
		t.Errorf("the second attempt has the CPUs %q, want one:\n%s", m, record)
	}
	mustRun(t, b.c, slurmcluster.Alpha, "scancel", string(job.ID))
}

func movedForReal(t *testing.T, c *cluster) {
	b := newBench(t, c, nil)
	job := b.start(t, saver(many))
	out := mustRun(t, b.c, slurmcluster.Alpha, "sbatch", "--parsable", "-p", b.partition, "-d", "afterok:"+string(job.ID),
		"--mem=10", "-o", filepath.Join(b.dir, "after"), "--wrap", "echo done")
	after := driver.JobID(out)
	b.says(t, job.ID, "epoch 2/")
	in := b.intent(b.get(t, job.ID), driver.Change{Cores: 3, MemoryBytes: 96 << 20})
	if step := b.drive(t, in, driver.StepStarted); step.Kind != driver.StepStarted || step.Attempt != 2 {
		t.Fatalf("step %+v, want %s in attempt 2", step, driver.StepStarted)
	}
	await(t, "the second attempt runs", func() bool { return b.get(t, job.ID).State == driver.Running })
	line := mustRun(t, b.c, slurmcluster.Alpha, "squeue", "-h", "-j", string(job.ID), "-O", "NumCPUs:|,MinMemory:|")
	if line != "3|96M|" {
		t.Errorf("the second attempt has %s, want 3|96M|", line)
	}
	if got := b.get(t, job.ID); got.Resources.Cores != 1 || got.Resources.MemoryBytes != 64<<20 || got.Change.Cores != 3 {
		t.Errorf("resources %+v, change %+v; want the owner's 1 core and 64 MiB, and 3", got.Resources, got.Change)
	}
	if got := b.get(t, after); got.State != driver.Pending || !strings.Contains(got.Detail, "Dependency") || strings.Contains(got.Detail, "Never") {
		t.Errorf("the dependant is %s (%s), want it to wait", got.State, got.Detail)
	}
	b.hurry(t)
	if got := b.ended(t, job.ID); got.State != driver.Succeeded || len(got.Attempts) != 2 {
		t.Errorf("the job is %s after %d attempts, want %s after 2", got.State, len(got.Attempts), driver.Succeeded)
	}
	if got := b.ended(t, after); got.State != driver.Succeeded {
		t.Errorf("the dependant is %s (%s), want %s", got.State, got.Detail, driver.Succeeded)
	}
}

func noRequeue(t *testing.T, c *cluster) {
	b := newBench(t, c, nil)
	spec := b.job(t, saver(many))
	spec.Source = []byte(strings.Replace(string(spec.Source), "#SBATCH", "#SBATCH --no-requeue\n#SBATCH", 1))
	job, err := b.d.Start(t.Context(), "request", spec)
	if err != nil {
		t.Fatal(err)
	}
	b.says(t, job.ID, "epoch 1/")
	in := b.intent(b.get(t, job.ID), driver.Change{Cores: 2})
	if _, err := b.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("Advance: %v, want %v", err, driver.ErrDenied)
	}
	if err := b.d.Check(t.Context(), in); !errors.Is(err, driver.ErrDenied) {
		t.Errorf("Check: %v, want %v", err, driver.ErrDenied)
	}
	b.says(t, job.ID, "epoch 5/")
	if text := b.output(t, job.ID); strings.Contains(text, "saved") {
		t.Errorf("the job was asked to save:\n%s", text)
	}
}

// A requeue ends an attempt by SIGTERM. A job may answer it as it likes, and a plain child
// of the script does not get it.
func discardedForReal(t *testing.T, c *cluster) {
	b := newBench(t, c, nil)
	for _, tt := range []struct{ name, first string }{
		{"exits well", "trap 'echo asked to go; exit 0' TERM; while :; do sleep 0.1; done"},
		{"fails", "trap 'echo asked to go; exit 3' TERM; while :; do sleep 0.1; done"},
		{"leaves as if it had saved", "trap 'echo asked to go; exit 85' TERM; while :; do sleep 0.1; done"},
		{"does not hear of it", "sleep 1000; exit 0"},
		{"stays", "trap 'echo asked to go' TERM; while :; do sleep 0.1; done"},
	} {
		spec := driver.Spec{Filename: "job.sh", Dir: b.dir, Source: []byte("#!/bin/bash\n#SBATCH --partition=" + b.partition + " --mem=10\n" +
			"f=$SLURM_JOB_ID.ran\nif [ -e $f ]; then echo second; exit 0; fi\ntouch $f\necho first\n" + tt.first + "\n")}
		job, err := b.d.Start(t.Context(), driver.RequestID(tt.name), spec)
		if err != nil {
			t.Fatal(err)
		}
		after := driver.JobID(mustRun(t, b.c, slurmcluster.Alpha, "sbatch", "--parsable", "-p", b.partition, "-d", "afterok:"+string(job.ID),
			"--mem=10", "-o", "/dev/null", "--wrap", "grep second "+filepath.Join(b.dir, "slurm-"+string(job.ID)+".out")))
		b.says(t, job.ID, "first")
		in := b.intent(b.get(t, job.ID), driver.Change{Cores: 2})
		in.ID, in.Discard = "discard "+tt.name, true
		began := time.Now()
		if step := b.drive(t, in, driver.StepStopped); step.Kind != driver.StepStopped {
			t.Fatalf("a job that %s: step %+v, want %s", tt.name, step, driver.StepStopped)
		}
		t.Logf("a job that %s was ended after %v", tt.name, time.Since(began).Round(100*time.Millisecond))
		if step := b.drive(t, in, driver.StepStarted); step.Kind != driver.StepStarted {
			t.Fatalf("a job that %s: step %+v, want %s", tt.name, step, driver.StepStarted)
		}
		got := b.ended(t, job.ID)
		if got.State != driver.Succeeded || len(got.Attempts) != 2 || got.Attempts[1].Intent != in.ID || strings.Count(b.output(t, job.ID), "second") != 1 {
			t.Errorf("a job that %s: %s after the attempts %+v, want %s after two; the output:\n%s", tt.name, got.State, got.Attempts, driver.Succeeded, b.output(t, job.ID))
		}
		if got := b.ended(t, after); got.State != driver.Succeeded {
			t.Errorf("the dependant of a job that %s is %s (%s), want it to run after the second attempt", tt.name, got.State, got.Detail)
		}
	}
}

func (b *bench) output(t *testing.T, id driver.JobID) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, "slurm-"+string(id)+".out"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func ownersWord(t *testing.T, c *cluster) {
	b := newBench(t, c, nil)
	for _, tt := range []struct {
		request driver.RequestID
		word    []string
		held    bool
	}{
		{"holds", []string{"hold"}, true},
		{"changes", []string{"update", "TimeLimit=77", "jobid="}, false},
	} {
		job, err := b.d.Start(t.Context(), tt.request, b.job(t, saver(many)))
		if err != nil {
			t.Fatal(err)
		}
		b.says(t, job.ID, "epoch 2/")
		in := b.intent(b.get(t, job.ID), driver.Change{Cores: 2})
		in.ID += string(tt.request)
		if step := b.drive(t, in, driver.StepStopped); step.Kind != driver.StepStopped {
			t.Fatalf("%s: step %+v, want %s", tt.request, step, driver.StepStopped)
		}
		args := append(slices.Clone(tt.word), string(job.ID))
		if last := len(args) - 1; strings.HasSuffix(args[last-1], "=") {
			args = append(args[:last-1], args[last-1]+args[last])
		}
		mustRun(t, b.c, slurmcluster.Alpha, "scontrol", args...)
		if step := b.drive(t, in, driver.StepSuperseded); step.Kind != driver.StepSuperseded || !tt.held && !strings.HasSuffix(step.Detail, " MiB, 1h17m0s") {
			t.Errorf("%s: step %+v, want %s with what its owner changed", tt.request, step, driver.StepSuperseded)
		}
		if tt.held {
			if got := b.get(t, job.ID); got.State != driver.Pending {
				t.Errorf("held by its owner the job is %s, want %s", got.State, driver.Pending)
			}
			// In the second of the requeue its node would refuse it: "Job credential revoked".
			pause(t.Context(), 3*time.Second)
			mustRun(t, b.c, slurmcluster.Alpha, "scontrol", "release", string(job.ID))
		}
		b.hurry(t)
		got := b.ended(t, job.ID)
		if err := os.Remove(b.hurried()); err != nil {
			t.Fatal(err)
		}
		if got.State != driver.Succeeded || got.Change.Cores != 0 || len(got.Attempts) != 2 || got.Attempts[1].Cause != slurm.CauseRequeue {
			t.Errorf("%s: the job is %s with attempts %+v, want %s without our change", tt.request, got.State, got.Attempts, driver.Succeeded)
		}
		if tt.word[0] == "update" && got.Resources.TimeLimit != 77*time.Minute {
			t.Errorf("the owner's time limit is %v, want his 77 min", got.Resources.TimeLimit)
		}
	}
}

func lowered(t *testing.T, c *cluster) {
	b := newBench(t, c, nil)
	submit := func(name string, args ...string) driver.Job {
		t.Helper()
		id := mustRun(t, b.c, slurmcluster.Alpha, "sbatch", append([]string{"--parsable", "-p", b.partition, "--mem=64", "--begin=now+1hour", "-o", "/dev/null", "-J", name}, args...)...)
		return b.get(t, driver.JobID(strings.TrimSpace(id)))
	}
	free, bound, fixed := submit("free", "--wrap=true"), submit("bound", "--wrap=true"), submit("fixed", "--no-requeue", "--wrap=true")
	submit("after", "--dependency=afterok:"+string(bound.ID), "--wrap=true")
	chain := submit("chain", "--wrap=true")
	submit("chain", "--dependency=singleton", "--wrap=true")
	for _, tc := range []struct {
		what   string
		job    driver.Job
		change driver.Change
		want   error
	}{
		{"less memory", free, driver.Change{MemoryBytes: 32 << 20}, nil},
		{"more memory", free, driver.Change{MemoryBytes: 80 << 20}, nil},
		{"arguments", free, driver.Change{Args: map[string]string{"--x": "1"}}, driver.ErrUnsupported},
		{"less memory of a job with a dependant", bound, driver.Change{MemoryBytes: 32 << 20}, driver.ErrUnsupported},
		{"less memory of a job for whose end the next of its name waits", chain, driver.Change{MemoryBytes: 32 << 20}, driver.ErrUnsupported},
		{"less memory of a job that may not be restarted", fixed, driver.Change{MemoryBytes: 32 << 20}, driver.ErrDenied},
	} {
		if err := b.d.Check(t.Context(), b.intent(tc.job, tc.change)); !errors.Is(err, tc.want) {
			t.Errorf("Check of %s: %v, want %v", tc.what, err, tc.want)
		}
	}
}

// returnedOnce: the process that sees the kill dies right after each effect of the return.
func returnedOnce(t *testing.T, c *cluster) {
	for _, crash := range []string{"none", "end-sent", "delayed", "changed"} {
		t.Run("crash after "+crash, func(t *testing.T) {
			struck := false
			b := newBench(t, c, func(cfg *slurm.Config) {
				cfg.AfterStep = func(step string) {
					if step == crash && !struck {
						struck = true
						panic(errCrash)
					}
				}
			})
			behaviour := saver(3)
			behaviour.MemoryBytes, behaviour.UseMemory = 512<<20, 300<<20
			spec := b.job(t, behaviour)
			spec.NotBefore = time.Now().Add(time.Hour)
			job, err := b.d.Start(t.Context(), "request", spec)
			if err != nil {
				t.Fatal(err)
			}
			armed := struck
			struck = true // its intent is not what is tested here
			in := b.intent(job, driver.Change{MemoryBytes: 128 << 20})
			if step := b.drive(t, in, driver.StepStarted); step.Kind != driver.StepStarted {
				t.Fatalf("step %+v", step)
			}
			struck = armed
			states := map[driver.State]bool{}
			await(t, "its end", func() bool {
				defer func() {
					if p := recover(); p != nil {
						b.shut(t)
						b.open(t) // another process goes on
					}
				}()
				job = b.get(t, job.ID)
				states[job.State] = true
				return job.State.Ended()
			})
			if job.State != driver.Succeeded || len(job.Attempts) != 2 || states[driver.MemoryExceeded] || struck != (crash != "none") {
				t.Fatalf("%+v, seen as %v, struck %v", job, states, struck)
			}
			a := job.Attempts[1]
			if a.Cause != driver.CauseMemory || a.Change.MemoryBytes != 0 || a.Intent != "" || job.Attempts[0].Intent != in.ID {
				t.Errorf("attempts %+v", job.Attempts)
			}
			if r := mustRun(t, b.c, slurmcluster.Alpha, "scontrol", "-o", "show", "job", string(job.ID)); !strings.Contains(r, "MinMemoryNode=512M") || !strings.Contains(r, "Restarts=1 ") {
				t.Errorf("Slurm has %s", r)
			}
		})
	}
}

func observedOnly(t *testing.T, c *cluster) {
	b := newBench(t, c, nil)
	submit := func(args ...string) string {
		args = append([]string{"--parsable", "-p", b.partition, "--mem=10", "-H", "-o", "/dev/null"}, args...)
		return mustRun(t, b.c, slurmcluster.Alpha, "sbatch", args...)
	}
	for what, id := range map[string]string{
		"several tasks":             submit("-n", "2", "--wrap", "true"),
		"several tasks of an array": submit("-n", "2", "-a", "1", "--wrap", "true") + "_1",
	} {
		job := b.get(t, driver.JobID(id))
		if job.ID != driver.JobID(id) || job.State != driver.Pending || !strings.Contains(string(job.Source), "true") {
			t.Errorf("%s: job %+v, want %s as it waits, with its script", what, job, id)
		}
		if err := b.d.Check(t.Context(), b.intent(job, driver.Change{Cores: 1})); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("%s: Check: %v, want %v", what, err, driver.ErrUnsupported)
		}
	}
	jobs, err := b.d.List(t.Context())
	if err != nil || len(jobs) != 2 {
		t.Errorf("%d jobs (%v), want 2", len(jobs), err)
	}
}

func othersUnseen(t *testing.T, c *cluster) {
	b := newBench(t, c, nil)
	id := driver.JobID(mustRun(t, b.c, slurmcluster.Beta, "sbatch", "--parsable", "-p", b.partition, "--mem=10", "-H", "-o", "/dev/null", "--wrap", "true"))
	if _, err := b.d.Get(t.Context(), id); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("Get: %v, want %v", err, driver.ErrNotFound)
	}
	if err := b.d.Stop(t.Context(), id); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("Stop: %v, want %v", err, driver.ErrNotFound)
	}
	if jobs, err := b.d.List(t.Context()); err != nil || len(jobs) != 0 {
		t.Errorf("%d jobs (%v), want none", len(jobs), err)
	}
}

func slurmctldRestarts(t *testing.T, _ *cluster) {
	own := newCluster(t) // the others' is not disturbed
	own.alone = true
	t.Cleanup(func() {
		if err := own.shared.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b := newBench(t, own, nil)
	job := b.start(t, saver(many))
	b.says(t, job.ID, "epoch 2/")
	in := b.intent(b.get(t, job.ID), driver.Change{Cores: 2})
	if step := b.drive(t, in, driver.StepStopped); step.Kind != driver.StepStopped {
		t.Fatalf("step %+v, want %s", step, driver.StepStopped)
	}
	b.c.StopCtld()
	if _, err := b.d.Advance(t.Context(), in); !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrUnknown) {
		t.Errorf("Advance without slurmctld: %v, want %v", err, driver.ErrTransient)
	}
	if err := b.c.StartCtld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if step := b.drive(t, in, driver.StepStarted); step.Kind != driver.StepStarted {
		t.Fatalf("step %+v, want %s", step, driver.StepStarted)
	}
	b.hurry(t)
	if got := b.ended(t, job.ID); got.State != driver.Succeeded || got.Attempts[len(got.Attempts)-1].Intent != in.ID {
		t.Errorf("the job is %s with attempts %+v, want %s under the intent", got.State, got.Attempts, driver.Succeeded)
	}
}

func listenerIsAStep(t *testing.T, c *cluster) {
	b := newBench(t, c, func(cfg *slurm.Config) {
		cfg.Listener = []string{"/bin/sh", "-c", "echo \"$SLURM_STEP_ID $*\" >heard.part && mv heard.part heard", "listener"}
	})
	job := b.start(t, saver(many))
	b.says(t, job.ID, "epoch 2/")
	if err := b.d.Listen(t.Context(), job.ID, 1, driver.Progress{Pattern: "epoch"}); err != nil {
		t.Fatal(err)
	}
	var heard string
	await(t, "the listener", func() bool {
		data, err := os.ReadFile(filepath.Join(b.dir, "heard"))
		heard = string(data)
		return err == nil
	})
	if want := "0 --pattern epoch --offset 0 --file "; !strings.HasPrefix(heard, want) {
		t.Errorf("step and arguments %q, want %q", heard, want)
	}
}
