package perf_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

func TestPerfCgroupsAreInTheTreeThatPerfLooksIn(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files map[string]string
		tree  string
		err   error
	}{
		{"no cgroups", nil, "", perf.ErrNoCgroupsNeeded},
		{"v2 alone, where jobs have their own", map[string]string{"cgroup.controllers": "cpu"}, "", perf.ErrNoCgroupsNeeded},
		{"v1 without perf", map[string]string{"memory/cgroup.procs": ""}, "", perf.ErrNoCgroupsNeeded},
		{"a tree of perf's alone", map[string]string{"perf_event/cgroup.procs": ""}, "", perf.ErrNoCgroupsNeeded},
		{"v1 with perf", map[string]string{"perf_event/cgroup.procs": "", "freezer/cgroup.procs": ""}, "perf_event", nil},
		{"hybrid with a tree of perf's", map[string]string{"unified/cgroup.controllers": "", "perf_event/cgroup.procs": "", "freezer/cgroup.procs": ""}, "perf_event", nil},
		{"hybrid", map[string]string{"unified/cgroup.controllers": "", "memory/cgroup.procs": ""}, "unified", nil},
	} {
		dir := t.TempDir()
		sandbox.Plant(t, dir, tc.files)
		m, err := perf.NewCgroups(hostfs.Root{CgroupFS: dir})
		if !errors.Is(err, tc.err) || (m == nil) != (tc.err != nil) {
			t.Errorf("%s: got %v, want %v", tc.name, err, tc.err)
		}
		if m != nil && m.Hierarchy() != tc.tree {
			t.Errorf("%s: leaves in %q, want %q", tc.name, m.Hierarchy(), tc.tree)
		}
	}
}

// A recorded tree: on Linux the file appears with the directory.
func TestProcessesAreMovedInPerfsTreeAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sandbox.Plant(t, dir, map[string]string{
		"unified/cgroup.controllers": "", "perf_event/cgroup.procs": "7\n", "freezer/cgroup.procs": "", "freezer/slurm/uid_1/job_42/cgroup.procs": "7\n",
		"perf_event/pitchpipe-perf/slurm-42/cgroup.procs": "",
	})
	m, err := perf.NewCgroups(hostfs.Root{CgroupFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Put("slurm-42", []int{7})
	want := filepath.Join(dir, "perf_event", perf.CgroupsTop, "slurm-42")
	if err != nil || got != want {
		t.Fatalf("%s, %v; want %s", got, err, want)
	}
	for path, want := range map[string]string{
		"perf_event/pitchpipe-perf/slurm-42/cgroup.procs": "7", "freezer/slurm/uid_1/job_42/cgroup.procs": "7\n",
	} {
		if data, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(data) != want {
			t.Errorf("%s holds %q, %v; want %q", path, data, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "unified", perf.CgroupsTop)); err == nil {
		t.Error("a leaf was made in v2, where perf does not look")
	}
}

func TestNamesOutsideTheTreeAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sandbox.Plant(t, dir, map[string]string{"unified/cgroup.controllers": "", "memory/cgroup.procs": ""})
	m, err := perf.NewCgroups(hostfs.Root{CgroupFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "..", "a/b", "../../x", ".hidden"} {
		if dir, err := m.Put(name, nil); err == nil {
			t.Errorf("%q: made %s", name, dir)
		}
	}
}

func TestProcessesAndWhatTheyStartAreInThePerfCgroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making cgroups needs root")
	}
	m, err := perf.NewCgroups(hostfs.Root{})
	if err != nil {
		t.Skipf("no leaves here: %v", err)
	}
	c := exec.CommandContext(t.Context(), "sh", "-c", "read line; sleep 60 & wait")
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("pptest-%d-%d", os.Getpid(), time.Now().UnixNano())
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	dir, err := m.Put(name, []int{c.Process.Pid, ended.Process.Pid})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	var pids []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			t.Fatal(err)
		}
		if pids = strings.Fields(string(data)); len(pids) == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("processes %v, want the shell and what it started", pids)
		}
	}
	if !slices.Contains(pids, strconv.Itoa(c.Process.Pid)) {
		t.Errorf("processes %v, want %d among them", pids, c.Process.Pid)
	}
	if err := m.Remove(name); err == nil {
		t.Error("a leaf that is in use was removed")
	}
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			t.Error(err)
		}
	}
	_ = c.Wait() // it was killed
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := m.Remove(name)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the leaf is still there: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
