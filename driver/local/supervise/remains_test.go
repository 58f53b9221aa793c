package supervise

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver/local/cgroup"
)

// orphan starts a process and lets the leader of its session end.
func orphan(t *testing.T, command string, env ...string) (leader Process, pid int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command+" </dev/null >/dev/null 2>&1 & echo $!")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(os.Environ(), env...)
	out := &strings.Builder{}
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	leader, err := identify(cmd.Process.Pid) // at worst a zombie: it was not waited for yet
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	pid, err = strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		p, _ := cgroup.ReadProcess(pid)
		if err == nil && strings.TrimSpace(string(name)) == "sleep" && p.Session == leader.PID {
			return leader, pid
		}
		if time.Now().After(end) {
			t.Fatalf("%s is %q (%v)", command, name, err)
		}
	}
}

func runs(pid int) bool {
	p, err := cgroup.ReadProcess(pid)
	return err == nil && !p.Ended
}

// try is KillRemains' try, repeated as its caller repeats it: a loaded machine may
// leave one try no time for two looks.
func try(t *testing.T, leader Process) error {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(t.Context(), remainsLimit)
		err = killSession(ctx, leader, "job-1")
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

func TestAProcessWithoutAnEnvironmentIsAStrangersWhenTheLeaderIsGone(t *testing.T) {
	t.Parallel()
	leader, pid := orphan(t, "env -i sleep 1000", JobVariable+"=job-1")
	if _, known := belongsTo(cgroup.Process{PID: pid}, "job-1"); known {
		t.Skip("this system shows an environment where there is none")
	}
	if err := try(t, leader); err != nil {
		t.Errorf("the job cannot be closed: %v", err)
	}
	if !runs(pid) {
		t.Error("a process that may be anybody's was killed")
	}
}

func TestAProcessWithoutAnEnvironmentIsWaitedForUntilTheTryEnds(t *testing.T) {
	t.Parallel()
	leader, _ := orphan(t, "env -i sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := killSession(ctx, leader, "job-1"); !errors.Is(err, context.Canceled) {
		t.Errorf("given up at the first look: %v", err)
	}
}

func TestOrphansThatCarryTheJobsNameAreKilledAndOthersAreNot(t *testing.T) {
	t.Parallel()
	leader, ours := orphan(t, "sleep 1000", JobVariable+"=job-1")
	other, theirs := orphan(t, "sleep 1000", JobVariable+"=job-2")
	for _, l := range []Process{leader, other} {
		if err := try(t, l); err != nil {
			t.Error(err)
		}
	}
	if runs(ours) || !runs(theirs) {
		t.Errorf("the job's runs: %t, the other's runs: %t", runs(ours), runs(theirs))
	}
}

func TestAProcessWhoseFirstThreadEndedIsKilled(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "headless")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err == nil { // the test killed none
			_ = cmd.Wait()
		}
	})
	leader, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	stat := filepath.Join("/proc", strconv.Itoa(leader.PID), "stat")
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		data, err := os.ReadFile(stat)
		if err == nil && strings.Contains(string(data), ") Z ") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("its first thread runs: %s (%v)", data, err)
		}
	}
	if !runs(leader.PID) {
		t.Fatal("it is taken for ended")
	}
	if err := try(t, leader); err != nil {
		t.Error(err)
	}
	if runs(leader.PID) {
		t.Fatal("it runs on")
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("it ended with %v, want killed", err)
	}
}
