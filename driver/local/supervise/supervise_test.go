package supervise_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/supervise"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "supervise" {
		os.Exit(supervise.Main(context.Background(), os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == "headless" {
		headless()
	}
	goleak.VerifyTestMain(m)
}

// headless ends the first thread of the process and runs on in the others.
func headless() {
	var ended atomic.Bool
	for !ended.Load() {
		go func() {
			runtime.LockOSThread() // keeps the thread, so that the next goroutine gets another
			if unix.Gettid() == os.Getpid() {
				ended.Store(true)
				_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
			}
			time.Sleep(time.Hour)
		}()
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Hour)
}

// attempt makes the directory of one without cgroups.
func attempt(t *testing.T, change func(*supervise.Plan), argv ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	plan := supervise.Plan{
		Job: "job-1", Attempt: 1, Self: []string{exe, "supervise"}, Argv: argv, Dir: dir,
		Env: []string{"PATH=/usr/bin:/bin", supervise.JobVariable + "=job-1"}, Output: filepath.Join(dir, "output"),
		Leaf: "job-1.1",
	}
	plan.Tree.Kind = "none"
	if change != nil {
		change(&plan)
	}
	if err := durable.WriteJSON(filepath.Join(dir, supervise.PlanFile), plan, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func supervisor(ctx context.Context, t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, exe, "supervise", dir)
	var text strings.Builder
	cmd.Stderr = &text
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(text.String())
		}
	})
	return cmd
}

// patience is how long these tests wait for what must come.
const patience = 2 * time.Minute

// await waits until a file is there.
func await(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
	t.Fatalf("waited %v in vain for %s", patience, path)
}

func exit(t *testing.T, dir string) supervise.Exit {
	t.Helper()
	var e supervise.Exit
	if err := durable.ReadJSON(filepath.Join(dir, supervise.ExitFile), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestOfManySupervisorsOneStartsTheAttempt(t *testing.T) {
	t.Parallel()
	dir := attempt(t, nil, "sh", "-c", "echo ran; sleep 0.3")
	var all sync.WaitGroup
	for range 4 {
		cmd := supervisor(t.Context(), t, dir)
		all.Go(func() {
			if err := cmd.Run(); err != nil && cmd.ProcessState.ExitCode() != 1 {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if data, err := os.ReadFile(filepath.Join(dir, "output")); err != nil || string(data) != "ran\n" {
		t.Errorf("output %q (%v), want that it ran once", data, err)
	}
	if e := exit(t, dir); e.Reason != supervise.Exited || e.Code != 0 || e.Ended.Before(e.Started) {
		t.Errorf("exit %+v, want exited with 0", e)
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	resolve := func(t *testing.T, dir string, want supervise.Status) {
		t.Helper()
		if got, err := supervise.Resolve(dir, &supervise.Exit{}); err != nil || got != want {
			t.Fatalf("Resolve: %s (%v), want %s", got, err, want)
		}
	}
	t.Run("an attempt that was not started is void and stays so", func(t *testing.T) {
		t.Parallel()
		dir := attempt(t, nil, "sh", "-c", "echo ran")
		resolve(t, dir, supervise.Void)
		if err := supervisor(t.Context(), t, dir).Run(); err == nil {
			t.Error("a supervisor of a void attempt ended well")
		}
		resolve(t, dir, supervise.Void)
		if _, err := os.Stat(filepath.Join(dir, "output")); !os.IsNotExist(err) {
			t.Errorf("output: %v, want none", err)
		}
	})
	t.Run("a directory that was never made is void", func(t *testing.T) {
		t.Parallel()
		resolve(t, filepath.Join(t.TempDir(), "missing"), supervise.Void)
	})
	t.Run("a dead supervisor leaves an attempt whose state is unknown", func(t *testing.T) {
		t.Parallel()
		dir := attempt(t, nil, "sleep", "1000")
		cmd := supervisor(t.Context(), t, dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, filepath.Join(dir, supervise.ProcessFile))
		var p supervise.Process
		if err := durable.ReadJSON(filepath.Join(dir, supervise.ProcessFile), &p); err != nil {
			t.Fatal(err)
		}
		resolve(t, dir, supervise.Alive)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Error("a killed supervisor ended well")
		}
		resolve(t, dir, supervise.Died)
		// One try is bounded, and repeated.
		err := supervise.KillRemains(t.Context(), dir)
		for end := time.Now().Add(patience); err != nil && time.Now().Before(end); {
			err = supervise.KillRemains(t.Context(), dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID)); err == nil && !strings.Contains(string(data), ") Z ") {
			t.Errorf("the job runs on: %s", data)
		}
	})
}

func TestASupervisorSurvivesWhatTheJobWouldNot(t *testing.T) {
	t.Parallel()
	dir := attempt(t, nil, "sh", "-c", "until [ -f go ]; do sleep 0.05; done")
	cmd := supervisor(t.Context(), t, dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, filepath.Join(dir, supervise.ProcessFile))
	for _, sig := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGUSR1} {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if e := exit(t, dir); e.Reason != supervise.Exited || e.Code != 0 {
		t.Errorf("exit %+v, want exited with 0", e)
	}
}

func TestHowAnAttemptEnds(t *testing.T) {
	t.Parallel()
	stop := func(why supervise.StopReason) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			if err := durable.WriteJSON(filepath.Join(dir, supervise.StopFile), supervise.Stop{Reason: why}, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	signal := func(t *testing.T, dir string) {
		t.Helper()
		s := supervise.Signal{ID: "intent", Signal: "SIGUSR1"}
		if err := durable.WriteJSON(filepath.Join(dir, supervise.SignalFile), s, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		argv   []string
		before func(*testing.T, string)
		change func(*supervise.Plan)
		want   supervise.Exit
	}{
		{name: "by itself", argv: []string{"sh", "-c", "exit 4"}, want: supervise.Exit{Reason: supervise.Exited, Code: 4}},
		{name: "by its own signal", argv: []string{"sh", "-c", "kill -SEGV $$"}, want: supervise.Exit{Reason: supervise.Signalled, Code: 139}},
		{
			name: "the command is not there", argv: []string{"no-such-command"},
			want: supervise.Exit{Reason: supervise.NotStarted, Code: 127},
		},
		{
			name: "the command may not be executed", argv: []string{"/etc/passwd"},
			want: supervise.Exit{Reason: supervise.NotStarted, Code: 126},
		},
		{
			name: "over its time", argv: []string{"sleep", "1000"},
			change: func(p *supervise.Plan) { p.TimeLimit = 200 * time.Millisecond },
			want:   supervise.Exit{Reason: supervise.TimeUp, Code: 143},
		},
		{
			name: "over its time and deaf to a polite word", argv: []string{"sh", "-c", "trap '' TERM; sleep 1000"},
			change: func(p *supervise.Plan) { p.TimeLimit = 4 * time.Second },
			want:   supervise.Exit{Reason: supervise.TimeUp, Code: 137},
		},
		{
			name: "stopped", argv: []string{"sh", "-c", ": >ready; exec sleep 1000"}, before: stop(supervise.StopCancelled),
			want: supervise.Exit{Reason: supervise.Stopped, Stop: supervise.StopCancelled, Code: 143},
		},
		{
			name: "discarded, and not politely: its end is no success", before: stop(supervise.StopDiscarded),
			argv: []string{"sh", "-c", "trap 'exit 0' TERM; : >ready; while :; do sleep 0.05; done"},
			want: supervise.Exit{Reason: supervise.Stopped, Stop: supervise.StopDiscarded, Code: 137},
		},
		{
			name: "discarded, before its script sees that its command was killed", before: stop(supervise.StopDiscarded),
			argv: []string{"sh", "-c", ": >ready; sleep 1000; exit 0"},
			want: supervise.Exit{Reason: supervise.Stopped, Stop: supervise.StopDiscarded, Code: 137},
		},
		{
			name: "asked to save, with the status that it likes", before: signal,
			argv: []string{"sh", "-c", "trap 'exit 85' USR1; : >ready; while :; do sleep 0.05; done"},
			want: supervise.Exit{Reason: supervise.Exited, Code: 85},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := attempt(t, tt.change, tt.argv...)
			cmd := supervisor(t.Context(), t, dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if tt.before != nil {
				await(t, filepath.Join(dir, "ready"))
				tt.before(t, dir)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			got := exit(t, dir)
			if got.Reason != tt.want.Reason || got.Code != tt.want.Code || got.Stop != tt.want.Stop || got.Detail == "" {
				t.Errorf("exit %+v, want %+v and a reason", got, tt.want)
			}
		})
	}
}
