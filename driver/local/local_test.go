package local_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/local"
	"pitchpipe/driver/local/cgroup"
	"pitchpipe/driver/local/supervise"
)

// fakeListener writes down how it was called and where it runs, waits for the
// signal that ends it, and says so. With LISTENER_DEAF it never ends by itself.
func fakeListener(args []string) int {
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM, unix.SIGINT)
	where, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 1
	}
	out := os.Getenv("LISTENER_OUT")
	text := fmt.Sprintf("pid %d\nargs %q\nenvironment %q\n%s", os.Getpid(), args, os.Environ(), where)
	if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
		return 1
	}
	text += (<-term).String() + "\n"
	if os.Getenv("LISTENER_DEAF") != "" {
		time.Sleep(time.Hour)
	}
	time.Sleep(50 * time.Millisecond) // longer than the times of files are coarse
	if err := os.WriteFile(out, []byte(text+"drained\n"), 0o600); err != nil {
		return 1
	}
	return 0
}

func (b *bench) start(t *testing.T, id driver.RequestID, spec driver.Spec) driver.Job {
	t.Helper()
	job, err := b.d.Start(t.Context(), id, spec)
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func (b *bench) until(t *testing.T, what string, id driver.JobID, is func(driver.Job) bool) driver.Job {
	t.Helper()
	var job driver.Job
	h := b.harness(t)
	h.Now, h.Sleep = time.Now, func(_ context.Context, d time.Duration) { time.Sleep(d) }
	h.Eventually(t, what, func(ctx context.Context) bool {
		var err error
		if job, err = b.d.Get(ctx, id); err != nil {
			t.Fatal(err)
		}
		return is(job)
	})
	return job
}

func (b *bench) ended(t *testing.T, id driver.JobID, want driver.State) driver.Job {
	t.Helper()
	job := b.until(t, "the job ends", id, func(j driver.Job) bool { return j.State.Ended() })
	if job.State != want {
		t.Fatalf("job is %s (%s), want %s; output:\n%s", job.State, job.Detail, want, output(t, b.d, id))
	}
	return job
}

func script(lines ...string) driver.Spec {
	return driver.Spec{Filename: "job.sh", Source: []byte("#!/bin/sh\n" + strings.Join(lines, "\n") + "\n")}
}

func (b *bench) attemptFile(job driver.Job, name string) string {
	return filepath.Join(b.cfg.Dir, "jobs", string(job.ID), "attempts", fmt.Sprintf("%d-1", job.Attempt), name)
}

func TestADeadSupervisorLosesItsJobAndLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	for _, root := range []string{local.DefaultCgroupRoot, ""} {
		t.Run("cgroups at "+root, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(c *local.Config) { c.CgroupRoot = root })
			job := b.start(t, "request", b.job(t, drivertest.Behaviour{Epochs: 10_000, Epoch: 50 * time.Millisecond}))
			job = b.until(t, "it runs", job.ID, func(j driver.Job) bool { return strings.Contains(output(t, b.d, j.ID), "epoch 1/") })
			var supervisor, process supervise.Process
			if err := errors.Join(
				durable.ReadJSON(b.attemptFile(job, supervise.StartedFile), &supervisor),
				durable.ReadJSON(b.attemptFile(job, supervise.ProcessFile), &process),
			); err != nil {
				t.Fatal(err)
			}
			if err := unix.Kill(supervisor.PID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			job = b.ended(t, job.ID, driver.Lost)
			if job.ExitCode != -1 || len(job.Attempts) != 1 || job.Attempts[0].Ended.IsZero() {
				t.Errorf("lost job %+v, want exit code -1 and one ended attempt", job)
			}
			if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process.PID)); err == nil && !strings.Contains(string(data), ") Z ") {
				t.Errorf("the job's process runs on: %s", data)
			}
			if left := b.cgroups(t); len(left) > 0 {
				t.Errorf("cgroups are left: %v", left)
			}
			b.shut(t)
			b.open(t)
			if again := b.ended(t, job.ID, driver.Lost); len(again.Attempts) != 1 {
				t.Errorf("a lost job was started again: %+v", again.Attempts)
			}
		})
	}
}

func TestWhatRemainsOfAJobEndsWithIt(t *testing.T) {
	t.Parallel()
	for _, root := range []string{local.DefaultCgroupRoot, ""} {
		t.Run("cgroups at "+root, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(c *local.Config) { c.CgroupRoot = root })
			// One in the background, one in its own session.
			ready := filepath.Join(b.dir, "ready")
			job := b.start(t, "request", script("sleep 1000 & echo $!",
				"setsid sh -c 'echo $$; : >"+ready+"; exec sleep 1000' &", "until [ -f "+ready+" ]; do sleep 0.02; done", "exit 0"))
			b.ended(t, job.ID, driver.Succeeded)
			pids := strings.Fields(output(t, b.d, job.ID))
			if len(pids) != 2 {
				t.Errorf("pids %v, want two", pids)
			}
			for _, pid := range pids {
				if data, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(data), ") Z ") {
					t.Errorf("process is left: %s", data)
				}
			}
		})
	}
}

func TestTheListenerRunsBesideTheJob(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, deaf string
		exit       int
		state      driver.State
		word       unix.Signal
	}{
		{"a job that fails may have left a line that is cut off", "", 3, driver.Failed, unix.SIGTERM},
		{"a job that succeeds leaves a last line that is whole", "", 0, driver.Succeeded, unix.SIGINT},
		{"a listener that is deaf is killed", "1", 3, driver.Failed, unix.SIGTERM},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "listener")
			b := newBench(t, func(c *local.Config) {
				c.Supervisor = append([]string{"/usr/bin/env", "TOKEN=of the scheduler"}, c.Supervisor...)
				c.Listener = []string{"/usr/bin/env", "LISTENER_OUT=" + out, "LISTENER_DEAF=" + tc.deaf, exe, "listen"}
			})
			spec := script("until [ -f "+out+" ]; do sleep 0.02; done", "echo epoch 1/1", fmt.Sprintf("exit %d", tc.exit))
			spec.Progress = driver.Progress{Pattern: "epoch (?P<epoch>\\d+)", Total: 7}
			job := b.start(t, "request", spec)
			job = b.ended(t, job.ID, tc.state)
			if job.ExitCode != tc.exit {
				t.Errorf("exit code %d, want the job's own %d", job.ExitCode, tc.exit)
			}
			data, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			text := string(data)
			file := filepath.Join(b.cfg.Dir, "jobs", string(job.ID), "output.log")
			want := fmt.Sprintf("args %q\n", []string{"--pattern", spec.Progress.Pattern, "--file", file, "--offset", "0", "--total", "7"})
			if !strings.Contains(text, want) {
				t.Errorf("listener:\n%s\nwant %s", text, want)
			}
			for _, variable := range []string{"PITCHPIPE_JOB_ID=" + string(job.ID), "PITCHPIPE_ATTEMPT=1"} {
				if !strings.Contains(text, strconv.Quote(variable)) {
					t.Errorf("listener:\n%s\nwant %s, since the exporter knows it by nothing else without cgroups", text, variable)
				}
			}
			if strings.Contains(text, "TOKEN=") {
				t.Errorf("listener:\n%s\nwant nothing of the scheduler's environment", text)
			}
			if (tc.deaf == "") != strings.HasSuffix(text, tc.word.String()+"\ndrained\n") {
				t.Errorf("listener:\n%s\nwant %v, and drained only where it is not deaf", text, tc.word)
			}
			if info, err := os.Stat(out); err != nil || tc.deaf == "" && !info.ModTime().After(job.Ended) {
				t.Errorf("%v: the job ended at %v, its listener at %v: want the job's end to be its own", err, job.Ended, info.ModTime())
			}
			if tree := cgroup.Probe(local.DefaultCgroupRoot); tree.Kind != cgroup.None {
				if leaf := "/" + cgroup.Parent + "/" + string(job.ID) + ".1"; !strings.Contains(text, leaf+"\n") {
					t.Errorf("listener:\n%s\nwant it in %s", text, leaf)
				}
			}
		})
	}
}
