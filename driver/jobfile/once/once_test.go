package once_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/jobfile/once"
)

// TestMain gives the processes of the tests default dispositions. A process that starts
// under nohup ignores HUP, its children inherit that, and no shell can trap a signal that
// it ignored when it started.
func TestMain(m *testing.M) {
	inherited := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(inherited, s) // execve resets what is caught, and keeps what is ignored
		}
	}
	os.Exit(m.Run())
}

// node is a node's directory of allocations, as raw_exec sees it.
type node struct {
	dir   string
	shell string
}

func nodes(t *testing.T, f func(t *testing.T, n node)) {
	t.Helper()
	for _, shell := range []string{"dash", "bash", "busybox"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(err)
			}
			f(t, node{dir: t.TempDir(), shell: path})
		})
	}
}

// task is a wrapped command in an allocation.
func (n node) task(t *testing.T, alloc, run string, env []string, command string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	for _, d := range []string{"alloc/data", "t/local"} {
		if err := os.MkdirAll(filepath.Join(n.dir, alloc, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, argv := once.Wrap(run, command, args)
	if filepath.Base(n.shell) == "busybox" {
		argv = append([]string{"sh"}, argv...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, n.shell, argv...)
	c.Dir = filepath.Join(n.dir, alloc, "t")
	c.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "NOMAD_ALLOC_DIR=" + filepath.Join(n.dir, alloc, "alloc"),
		"NOMAD_TASK_DIR=" + filepath.Join(n.dir, alloc, "t/local"), "LC_ALL=C",
	}, env...)
	out := &bytes.Buffer{}
	c.Stdout, c.Stderr = out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c, out
}

func (n node) status(t *testing.T, alloc, run string, env []string, command string, args ...string) (int, string) {
	t.Helper()
	c, out := n.task(t, alloc, run, env, command, args...)
	return ended(t, c.Run()), out.String()
}

func ended(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit == nil {
		return 0
	}
	return exit.ExitCode()
}

func TestWorkThatIsDoneIsNotDoneAgain(t *testing.T) {
	t.Parallel()
	nodes(t, func(t *testing.T, n node) {
		work := []string{"-c", "echo worked >>../../work; exit $1", "sh"}
		do := func(alloc, run, status string) (int, string) {
			return n.status(t, alloc, run, nil, "/bin/sh", append(slices.Clone(work), status)...)
		}
		for _, step := range []struct {
			name, alloc, run, exits string
			status, times           int
		}{
			{"a run that fails leaves no mark", "a1", "r1", "3", 3, 1},
			{"so it is run again in the same allocation", "a1", "r1", "0", 0, 2},
			{"then it is done, in the same allocation", "a1", "r1", "9", 0, 2},
			{"and in another one of the node", "a2", "r1", "9", 0, 2},
			{"another run is another", "a2", "r2", "0", 0, 3},
		} {
			status, out := do(step.alloc, step.run, step.exits)
			done, err := os.ReadFile(filepath.Join(n.dir, "work"))
			if err != nil {
				t.Fatal(err)
			}
			if times := strings.Count(string(done), "worked"); status != step.status || times != step.times {
				t.Errorf("%s: status %d, worked %d times, want %d and %d\n%s", step.name, status, times, step.status, step.times, out)
			}
		}
	})
}

func TestTheAuthorsDirectoryCarriesTheMarkToEveryNode(t *testing.T) {
	t.Parallel()
	nodes(t, func(t *testing.T, n node) {
		shared := filepath.Join(t.TempDir(), "not there yet")
		env := []string{once.Variable + "=" + shared}
		if status, out := n.status(t, "a1", "r1", env, "true"); status != 0 {
			t.Fatalf("status %d\n%s", status, out)
		}
		other := node{dir: t.TempDir(), shell: n.shell}
		if status, out := other.status(t, "a1", "r1", env, "false"); status != 0 || !strings.Contains(out, "is done") {
			t.Errorf("on another node: status %d\n%s", status, out)
		}
		if status, _ := other.status(t, "a1", "r1", nil, "false"); status != 1 {
			t.Errorf("without the directory: status %d, want it run", status)
		}
	})
}

func TestEachChildAndEachIndexHasWorkOfItsOwn(t *testing.T) {
	t.Parallel()
	nodes(t, func(t *testing.T, n node) {
		for i, env := range [][]string{
			{"NOMAD_JOB_ID=batch/dispatch-1-a", "NOMAD_ALLOC_INDEX=0"},
			{"NOMAD_JOB_ID=batch/dispatch-1-b", "NOMAD_ALLOC_INDEX=0"},
			{"NOMAD_JOB_ID=batch/dispatch-1-b", "NOMAD_ALLOC_INDEX=1"},
		} {
			for _, want := range []int{i + 1, i + 1} { // the second time it is done
				if status, out := n.status(t, "a", "r", env, "/bin/sh", "-c", "echo worked >>../../work"); status != 0 {
					t.Fatalf("status %d\n%s", status, out)
				}
				done, err := os.ReadFile(filepath.Join(n.dir, "work"))
				if err != nil {
					t.Fatal(err)
				}
				if times := strings.Count(string(done), "worked"); times != want {
					t.Errorf("%q: worked %d times, want %d", env, times, want)
				}
			}
		}
	})
}

func TestTheCommandsStatusAndWordsAreKept(t *testing.T) {
	t.Parallel()
	nodes(t, func(t *testing.T, n node) {
		for _, tt := range []struct {
			name   string
			status int
			argv   []string
		}{
			{"one that fails", 85, []string{"sh", "-c", "exit 85"}},
			{"one that a signal kills", 137, []string{"sh", "-c", "kill -KILL $$"}},
			{"one that is not there", 127, []string{"no-such-program"}},
			{"words with spaces, dollars and braces", 0, []string{"sh", "-c", `[ "$1" = 'a $b "c" $(d)' ] && [ "$#" = 2 ] && [ -z "$2" ]`, "sh", `a $b "c" $(d)`, ""}},
		} {
			if status, out := n.status(t, "a", "r"+tt.name[4:7], nil, tt.argv[0], tt.argv[1:]...); status != tt.status {
				t.Errorf("%s: status %d, want %d\n%s", tt.name, status, tt.status, out)
			}
		}
	})
}

func TestACommandIsLookedForAsNomadDoes(t *testing.T) {
	t.Parallel()
	nodes(t, func(t *testing.T, n node) {
		if status, _ := n.status(t, "a", "r", nil, "false"); status != 1 {
			t.Fatalf("status %d", status)
		}
		for i, place := range []string{"false", "local/false"} {
			path := filepath.Join(n.dir, "a/t", place)
			if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 4"+string(rune('0'+i))+"\n"), 0o755); err != nil { //nolint:gosec // a program must be executable
				t.Fatal(err)
			}
			if status, out := n.status(t, "a", "r", nil, "false"); status != 40+i {
				t.Errorf("%s: status %d\n%s", place, status, out)
			}
		}
	})
}

func TestSignalsAreHandedOn(t *testing.T) {
	t.Parallel()
	nodes(t, func(t *testing.T, n node) {
		for _, sig := range []syscall.Signal{
			syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
		} {
			// A program that does not mind what it was started to ignore.
			c, out := n.task(t, "a", "r", nil, "python3", "-c", `import os, signal, sys
signal.signal(int(sys.argv[1]), lambda *_: sys.exit(40 + int(sys.argv[1])))
open("ready", "w").close()
while True: signal.pause()`, itoa(int(sig)))
			n.begin(t, c, "a")
			if err := c.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if status := ended(t, c.Wait()); status != 40+int(sig) {
				t.Errorf("%v: status %d, want %d\n%s", sig, status, 40+int(sig), out)
			}
		}
	})
}

// TestAWrapperThatInheritsAnIgnoredHangUpStillHandsOnTheRest: HUP stays ignored, as it does
// for a command without the wrapper, and everything else works.
func TestAWrapperThatInheritsAnIgnoredHangUpStillHandsOnTheRest(t *testing.T) {
	t.Parallel()
	nodes(t, func(t *testing.T, n node) {
		c, out := n.task(t, "a", "r", nil, "/bin/sh", "-c", "trap 'exit 40' TERM; touch ready; while :; do sleep 0.01; done")
		c.Args = append([]string{"/bin/sh", "-c", `trap "" HUP; exec "$@"`, "sh"}, append([]string{c.Path}, c.Args[1:]...)...)
		c.Path = "/bin/sh"
		n.begin(t, c, "a")
		for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGTERM} {
			if err := c.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
		}
		if status := ended(t, c.Wait()); status != 40 {
			t.Errorf("status %d, want 40\n%s", status, out)
		}
	})
}

// TestWorkThatEndsBecauseItWasToldToIsNotDone: many programs save and end with 0 when
// they are asked to end, and go on where they are begun again. USR1 is a request to save,
// and who ends with 0 after that has done its work.
func TestWorkThatEndsBecauseItWasToldToIsNotDone(t *testing.T) {
	t.Parallel()
	nodes(t, func(t *testing.T, n node) {
		for _, tt := range []struct {
			sig  syscall.Signal
			done bool
		}{
			{syscall.SIGINT, false},
			{syscall.SIGTERM, false},
			{syscall.SIGHUP, false},
			{syscall.SIGQUIT, false},
			{syscall.SIGUSR1, true},
			{syscall.SIGUSR2, true},
		} {
			run := "r" + itoa(int(tt.sig))
			c, out := n.task(t, "a", run, nil, "/bin/sh", "-c", "trap 'exit 0' INT TERM HUP QUIT USR1 USR2; touch ready; while :; do sleep 0.01; done")
			n.begin(t, c, "a")
			if err := c.Process.Signal(tt.sig); err != nil {
				t.Fatal(err)
			}
			if status := ended(t, c.Wait()); status != 0 {
				t.Errorf("%v: status %d\n%s", tt.sig, status, out)
			}
			status, _ := n.status(t, "b", run, nil, "/bin/sh", "-c", "exit 3")
			if done := status == 0; done != tt.done {
				t.Errorf("%v: the successor ends with %d, the work counts as done: %v, want %v\n%s", tt.sig, status, done, tt.done, out)
			}
		}
	})
}

// begin starts a task and waits until it made the file "ready" in its directory.
func (n node) begin(t *testing.T, c *exec.Cmd, alloc string) {
	t.Helper()
	ready := filepath.Join(n.dir, alloc, "t/ready")
	_ = os.Remove(ready) // of a task before
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(ready); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the program did not start")
		}
	}
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

// TestASignalThatTheCommandSurvivesEndsNothing: it saves and goes on, many times. What is
// not answered is sent again: bash forgets a signal that comes while it runs a trap of the
// same kind.
func TestASignalThatTheCommandSurvivesEndsNothing(t *testing.T) {
	t.Parallel()
	nodes(t, func(t *testing.T, n node) {
		c, out := n.task(t, "a", "r", nil, "python3", "-c", `import os, signal, sys, time
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
for i in range(50):
    open("ready.new", "w").close()
    os.rename("ready.new", "ready")
    while len(seen) <= i: time.sleep(0.001)
sys.exit(7)`)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		ready := filepath.Join(n.dir, "a/t/ready")
		deadline := time.After(2 * time.Minute)
		var sent time.Time
		for {
			select {
			case err := <-done:
				if status := ended(t, err); status != 7 {
					t.Errorf("status %d, want 7\n%s", status, out)
				}
				return
			case <-deadline:
				t.Fatal("it did not end")
			case <-time.After(time.Millisecond):
				if os.Remove(ready) == nil || !sent.IsZero() && time.Since(sent) > time.Second {
					sent = time.Now()
					_ = c.Process.Signal(syscall.SIGUSR1) // it may have ended
				}
			}
		}
	})
}

func TestUnwrapReturnsWhatWasWrapped(t *testing.T) {
	t.Parallel()
	command, args := once.Wrap("r-1", "/bin/train", []string{"-c", "x", "--", "--lr=1"})
	run, inner, rest, ok := once.Unwrap(command, args)
	if !ok || run != "r-1" || inner != "/bin/train" {
		t.Errorf("run %q, command %q, %v", run, inner, ok)
	}
	if diff := cmp.Diff([]string{"-c", "x", "--", "--lr=1"}, rest); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, argv := range [][]string{{"/bin/sh"}, {"/bin/sh", "-c", "true"}, {"/bin/sh", "-c", "x", "y", "r", "z"}, {"/bin/train", "-c", "x", once.Name, "r", "z"}} {
		if _, inner, rest, ok := once.Unwrap(argv[0], argv[1:]); ok || inner != argv[0] || !slices.Equal(rest, argv[1:]) {
			t.Errorf("%q was unwrapped to %q %q", argv, inner, rest)
		}
	}
}

// TestAJobKeepsTheWrapperThatItWasRegisteredWith: another text of it would be another job
// to Nomad, and a change that is taken back would restart it.
func TestAJobKeepsTheWrapperThatItWasRegisteredWith(t *testing.T) {
	t.Parallel()
	older := []string{"-c", "# an older text", once.Name, "r-1", "/bin/train", "--lr=1"}
	want := []string{"-c", "# an older text", once.Name, "r-1", "/bin/train", "--lr=2", "-v"}
	if diff := cmp.Diff(want, once.Rewrap(older, []string{"--lr=2", "-v"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNomadReplacesNothingInTheWrapper(t *testing.T) {
	t.Parallel()
	_, args := once.Wrap("r", "true", nil)
	if s := args[1]; strings.Contains(s, "${") || strings.Contains(s, "%{") {
		t.Errorf("the wrapper has a template:\n%s", s)
	}
}

func TestRunsAreNamesOfFiles(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{"a-1B": true, "": false, "a/b": false, "a b": false, "$(x)": false, strings.Repeat("a", 65): false} {
		if once.Run(name) != ok {
			t.Errorf("Run(%q) = %v", name, !ok)
		}
	}
}
