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

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/hostfs"
)

func TestWhatTheKernelSaysOfProcessesThatComeAndGo(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		threads    int
		newest     uint64
	}{
		{"a line of the kernel's is read", "0.74 1.19 2.18 2/345 12345\n", 345, 12345},
		{"a kernel that is played by a program says nothing", "0.00 0.00 0.00 0/0 0\n", 0, 0},
		{"a shorter line says nothing", "0.00 0.00 0.00 1/1\n", 0, 0},
		{"no numbers say nothing", "0 0 0 1/x 5\n", 0, 0},
		{"an empty file says nothing", "", 0, 0},
	} {
		if threads, newest := attrib.ParseStir([]byte(tc.text)); threads != tc.threads || newest != tc.newest {
			t.Errorf("%s: %d threads, number %d", tc.name, threads, newest)
		}
	}
}

func FuzzParseStir(f *testing.F) {
	f.Add([]byte("0.74 1.19 2.18 2/345 12345\n"))
	f.Add([]byte("0 0 0 1/1 1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if threads, newest := attrib.ParseStir(data); (threads == 0) != (newest == 0) || threads < 0 {
			t.Errorf("%q: %d threads, number %d", data, threads, newest)
		}
	})
}

// statOf is /proc/<pid>/stat with these fields, numbered as in proc(5).
func statOf(name string, fields map[int]uint64) string {
	out := "7 (" + name + ") S"
	for n := 4; n <= 52; n++ {
		out += fmt.Sprint(" ", fields[n])
	}
	return out + "\n"
}

func TestWhereAProcessComesFrom(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, text string
		parent     int
		start      uint64
		image      []uint64
		ok         bool
	}{
		{"all of it", statOf("sh", map[int]uint64{4: 5, 22: 900, 26: 1, 28: 2, 50: 3}), 5, 900, []uint64{1, 2, 3}, true},
		{"a name of brackets and spaces", statOf("a) S 1 (b", map[int]uint64{4: 5, 22: 900, 26: 1, 28: 2, 50: 3}), 5, 900, []uint64{1, 2, 3}, true},
		{"of a process that may not be traced", statOf("sh", map[int]uint64{4: 5, 22: 900, 26: 1}), 5, 900, nil, true},
		{"a short line", "7 (sh) S 5 1 1", 5, 0, nil, true},
		{"no line", "", 0, 0, nil, false},
		{"no number", "7 (sh) S x", 0, 0, nil, false},
	} {
		parent, start, image, ok := attrib.ParseDescent([]byte(tc.text))
		if parent != tc.parent || start != tc.start || ok != tc.ok || !cmp.Equal(image, tc.image) {
			t.Errorf("%s: %d, %d, %v, %v", tc.name, parent, start, image, ok)
		}
	}
}

func FuzzParseDescent(f *testing.F) {
	f.Add([]byte(statOf("sh", map[int]uint64{4: 5, 22: 900, 26: 1, 28: 2, 50: 3})))
	f.Add([]byte("7 (sh) S 5"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if parent, _, _, ok := attrib.ParseDescent(data); parent < 0 || !ok && parent != 0 {
			t.Errorf("%q: parent %d, %v", data, parent, ok)
		}
	})
}

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
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(cmd.Process.Pid), "environ"))
		if err == nil && bytes.Contains(text, []byte(id)) {
			break
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatal("the program does not begin")
		}
	}
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
	plant(t, root.Cgroup(), map[string]string{"cgroup.controllers": "cpu\n", "pitchpipe/0.1/cgroup.procs": "1\n", "pitchpipe/1.1/cgroup.procs": "1\n"})
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
		plant(t, root.Cgroup("pitchpipe", fmt.Sprintf("%d.1", n+2)), map[string]string{"cgroup.procs": "1\n"})
	}
}
