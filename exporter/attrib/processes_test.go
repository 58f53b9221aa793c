package attrib_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

// onlyProcesses scans this machine's own /proc and no cgroups.
func onlyProcesses(t *testing.T) *attrib.Scanner {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("there is no /proc")
	}
	return attrib.NewScanner(hostfs.Root{CgroupFS: t.TempDir()}, attrib.TrustOwn)
}

// sees reports whether a scan finds a job of that name.
func sees(t *testing.T, s *attrib.Scanner, id string) bool {
	t.Helper()
	for _, f := range s.Scan(t.Context()) {
		if f.Key.ID == id {
			return true
		}
	}
	return false
}

// begins waits until the environment of a process names the job: just after its exec it is
// empty.
func begins(t *testing.T, pid int, id string) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "environ"))
		if err == nil && bytes.Contains(text, []byte(id)) {
			return
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatal("the program does not begin")
		}
	}
}

func TestAProcessOfThisMachineIsSeenByTheNextScanAndMissedByTheOneAfterItsEnd(t *testing.T) {
	t.Parallel()
	s := onlyProcesses(t)
	for n := range 3 {
		id := fmt.Sprintf("stir-%d-%d", os.Getpid(), n)
		for range 2 {
			if sees(t, s, id) {
				t.Fatal("a job that has not begun is seen")
			}
		}
		cmd := exec.CommandContext(t.Context(), "sleep", "600")
		cmd.Env = append(os.Environ(), attrib.EnvJob+"="+id)
		if err := cmd.Start(); err != nil {
			t.Skip(err)
		}
		begins(t, cmd.Process.Pid, id)
		for scan := range 3 { // the later ones meet a machine where perhaps nothing stirs
			if !sees(t, s, id) {
				t.Errorf("scan %d after its begin does not see the job", scan+1)
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		if sees(t, s, id) {
			t.Error("a job that has ended is seen")
		}
	}
}

func TestAProcessOfThisMachineThatBecomesAJobsByExecIsSeen(t *testing.T) {
	t.Parallel()
	s := onlyProcesses(t)
	id := fmt.Sprintf("exec-%d", os.Getpid())
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "read line; "+attrib.EnvJob+"="+id+" exec sleep 600")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }() // it is killed
	for range 2 {
		if sees(t, s, id) {
			t.Fatal("the job is seen before its program runs")
		}
	}
	if _, err := io.WriteString(in, "go\n"); err != nil {
		t.Fatal(err)
	}
	begins(t, cmd.Process.Pid, id)
	for range 3 { // it is looked at when it is due
		if sees(t, s, id) {
			return
		}
	}
	t.Error("the job is not seen")
}

func TestOneOfFewCgroupsThatTakesTheNextOnesPlaceIsSeen(t *testing.T) {
	t.Parallel()
	root := hostfs.Root{ProcFS: t.TempDir(), CgroupFS: t.TempDir()}
	sandbox.Plant(t, root.Cgroup(), map[string]string{"cgroup.controllers": "cpu\n", "pitchpipe/0.1/cgroup.procs": "1\n", "pitchpipe/1.1/cgroup.procs": "1\n"})
	s := attrib.NewScanner(root, attrib.TrustOwn)
	ids := func() string {
		var out []string
		for _, f := range s.Scan(t.Context()) {
			out = append(out, f.Key.ID)
		}
		return strings.Join(out, " ")
	}
	for n := range 4 {
		for range 2 {
			if got, want := ids(), fmt.Sprintf("%d %d", n, n+1); got != want {
				t.Errorf("jobs %q, want %q", got, want)
			}
		}
		if err := os.RemoveAll(root.Cgroup("pitchpipe", fmt.Sprintf("%d.1", n))); err != nil {
			t.Fatal(err)
		}
		sandbox.Plant(t, root.Cgroup("pitchpipe", fmt.Sprintf("%d.1", n+2)), map[string]string{"cgroup.procs": "1\n"})
	}
}
