package cgroup_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver/local/cgroup"
)

// With this variable the test binary is the first process of a namespace, where it says
// which number the next process gets.
const firstRole = "PITCHPIPE_TEST_FIRST"

func TestMain(m *testing.M) {
	if os.Getenv(firstRole) != "" {
		if err := recycle(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func sleeper() (*exec.Cmd, error) {
	c := exec.Command("sleep", "1000") //nolint:noctx // it ends with its namespace
	return c, c.Start()
}

// recycle has the number of the process given to another between the question and the signal.
func recycle() error {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	meant, err := sleeper()
	if err != nil {
		return err
	}
	pid := meant.Process.Pid
	var stranger *exec.Cmd
	err = cgroup.Signal(pid, unix.SIGKILL, func() bool {
		if err = meant.Process.Kill(); err != nil {
			return false
		}
		_ = meant.Wait() // it was killed
		for range 100 {
			if err = os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
				return false
			}
			if stranger, err = sleeper(); err != nil || stranger.Process.Pid == pid {
				return err == nil
			}
		}
		err = fmt.Errorf("no process got the number %d again", pid)
		return false
	})
	if err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond) // enough to die of a signal
	var status unix.WaitStatus
	if ended, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); ended == pid || err != nil {
		return fmt.Errorf("the stranger under the same number was signalled: %v, %w", status, err)
	}
	return nil
}

func TestAStrangerUnderTheSameNumberIsNotSignalled(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root makes a namespace of processes")
	}
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), firstRole+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestOnlyTheProcessThatIsMeantIsSignalled(t *testing.T) {
	t.Parallel()
	for name, is := range map[string]bool{"the one that is meant is": true, "another is not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := sleeper()
			if err != nil {
				t.Fatal(err)
			}
			if err := cgroup.Signal(c.Process.Pid, unix.SIGUSR1, func() bool { return is }); err != nil {
				t.Error(err)
			}
			_ = c.Process.Kill()
			_ = c.Wait() // it was signalled
			status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
			if got := status.Signal() == unix.SIGUSR1; !ok || got != is {
				t.Errorf("ended by %v", status.Signal())
			}
		})
	}
}

func TestAProcessThatIsGoneIsNoError(t *testing.T) {
	t.Parallel()
	if err := cgroup.Signal(1<<22+1, unix.SIGKILL, func() bool { return true }); err != nil {
		t.Error(err)
	}
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	const line = `77 (a (b) c) S 1 70 71 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 9000000 42 18446744073709551615 1`
	p, err := cgroup.ParseStat(77, line)
	if err != nil {
		t.Fatal(err)
	}
	if p.PID != 77 || p.Parent != 1 || p.Session != 71 || p.Ended || p.Start != 12345 || p.RSS <= 42 {
		t.Errorf("process %+v, want parent 1, session 71, running, start 12345 and 42 pages", p)
	}
	for _, text := range []string{"", "77 (x", "77 (x) S 1", "77 (x) S a b c d e f g h i j k l m n o p q r s t u v"} {
		if p, err := cgroup.ParseStat(77, text); err == nil {
			t.Errorf("parseStat(%q) = %+v, want an error", text, p)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add(`77 (a (b) c) S 1 70 71 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 12345 9000000 42 18446744073709551615 1`)
	f.Add(") ")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := cgroup.ParseStat(1, text); err == nil && p.PID != 1 {
			t.Errorf("parseStat(%q) = %+v", text, p)
		}
	})
}
