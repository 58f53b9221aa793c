package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/local/cgroup"
	"pitchpipe/test/sandbox"
)

const mount = "/sys/fs/cgroup"

// fakeTree writes files below a directory that stands for a cgroup mount.
func fakeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	sandbox.Plant(t, root, files)
	return root
}

func TestProbe(t *testing.T) {
	t.Parallel()
	v1 := map[string]string{
		"cpuset/cpuset.cpus": "0-3\n", "cpuset/cgroup.procs": "",
		"memory/memory.limit_in_bytes": "9223372036854771712\n", "memory/cgroup.procs": "",
	}
	with := func(base map[string]string, more ...string) map[string]string {
		out := map[string]string{}
		maps.Copy(out, base)
		for i := 0; i < len(more); i += 2 {
			out[more[i]] = more[i+1]
		}
		return out
	}
	for _, tt := range []struct {
		name           string
		files          map[string]string
		kind           cgroup.Kind
		cpuset, memory bool
		unified        string
		cpus           []int
	}{
		{"a directory without cgroups offers nothing", nil, cgroup.None, false, false, "", nil},
		{"version 1 offers what is mounted", v1, cgroup.V1, true, true, "", []int{0, 1, 2, 3}},
		{
			"a hybrid has a unified hierarchy beside it",
			with(v1, "unified/cgroup.controllers", "", "unified/cgroup.procs", ""),
			cgroup.Hybrid, true, true, "unified",
			[]int{0, 1, 2, 3},
		},
		{
			"a unified hierarchy alone is a hybrid without controllers",
			map[string]string{"unified/cgroup.controllers": "", "unified/cgroup.procs": ""},
			cgroup.Hybrid, false, false, "unified", nil,
		},
		{
			"version 2 offers what the parent hands down",
			map[string]string{
				"cgroup.controllers": "cpuset cpu memory\n", "cgroup.procs": "", "cgroup.subtree_control": "cpuset memory\n",
				"pitchpipe/cgroup.subtree_control": "cpuset memory\n", "pitchpipe/cpuset.cpus.effective": "2-3\n",
			},
			cgroup.V2, true, true, ".",
			[]int{2, 3},
		},
		{
			"version 2 without the memory controller says so",
			map[string]string{
				"cgroup.controllers": "cpuset\n", "cgroup.procs": "", "cgroup.subtree_control": "cpuset\n",
				"pitchpipe/cgroup.subtree_control": "cpuset\n",
			},
			cgroup.V2, true, false, ".", nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := fakeTree(t, tt.files)
			got := cgroup.Probe(root)
			unified := ""
			if tt.unified != "" {
				unified = filepath.Join(root, tt.unified)
			}
			want := cgroup.Tree{Root: root, Kind: tt.kind, Cpuset: tt.cpuset, Memory: tt.memory, Unified: unified, Reason: got.Reason}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("Probe (-want +got):\n%s", d)
			}
			if (got.Reason == "") != (got.Cpuset && got.Memory) && got.Kind != cgroup.V1 {
				t.Errorf("reason %q for cpuset %v, memory %v", got.Reason, got.Cpuset, got.Memory)
			}
			if d := cmp.Diff(tt.cpus, got.CPUs()); d != "" {
				t.Errorf("CPUs (-want +got):\n%s", d)
			}
		})
	}
	if got := cgroup.Probe(""); got.Kind != cgroup.None || got.Reason == "" {
		t.Errorf("Probe of nothing: %+v, want none with a reason", got)
	}
}

func TestAVersion2LeafIsLimitedThroughItsFiles(t *testing.T) {
	t.Parallel()
	all := []string{"cpuset.cpus", "memory.max", "memory.swap.max", "memory.oom.group"}
	limits := map[string]string{"cpuset.cpus": "2,5", "memory.max": "268435456", "memory.swap.max": "0", "memory.oom.group": "1"}
	for _, tt := range []struct {
		name  string
		files []string // that the kernel made
		fails bool
	}{
		{"all of them", all, false},
		{"a kernel without swap", []string{"cpuset.cpus", "memory.max", "memory.oom.group"}, false},
		{"a kernel that kills one by one", []string{"cpuset.cpus", "memory.max", "memory.swap.max"}, false},
		{"a leaf without the memory controller", []string{"cpuset.cpus"}, true},
		{"a leaf without the cpuset controller", []string{"memory.max"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{
				"cgroup.controllers": "cpuset memory\n", "cgroup.procs": "", "cgroup.subtree_control": "cpuset memory\n",
				"pitchpipe/cgroup.subtree_control": "cpuset memory\n", "pitchpipe/cgroup.controllers": "cpuset memory\n",
			}
			for _, name := range tt.files {
				files["pitchpipe/local-1.1/"+name] = ""
			}
			root := fakeTree(t, files)
			tree, dir := cgroup.Probe(root), filepath.Join(root, cgroup.Parent, "local-1.1")
			err := tree.Open("local-1.1").Limit(cgroup.Limits{CPUs: []int{2, 5}, MemoryBytes: 1 << 28})
			if tt.fails {
				if !errors.Is(err, os.ErrNotExist) {
					t.Errorf("error %v, want %v: a leaf that confines nothing is none", err, os.ErrNotExist)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range all {
				got, err := os.ReadFile(filepath.Join(dir, name))
				if made := slices.Contains(tt.files, name); made != (err == nil) || made && string(got) != limits[name] {
					t.Errorf("%s holds %q (%v), want %s where it exists", name, got, err, limits[name])
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "memory.events"), []byte("low 0\noom 4\noom_kill 3\noom_group_kill 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := tree.Open("local-1.1").OOMKills(); got != 3 {
				t.Errorf("%d kills for memory, want 3", got)
			}
		})
	}
}

func TestALeafSaysWhatTheKernelCountedOfItsMemory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		files       map[string]string
		tree        cgroup.Tree
		peak, cache uint64
	}{
		{"version 1", map[string]string{
			"memory/pitchpipe/a.1/memory.max_usage_in_bytes": "5000\n", "memory/pitchpipe/a.1/memory.stat": "cache 9\nrss 1\ntotal_cache 700\n",
		}, cgroup.Tree{Kind: cgroup.V1, Memory: true}, 5000, 700},
		{"version 2", map[string]string{
			"pitchpipe/a.1/memory.peak": "5000\n", "pitchpipe/a.1/memory.stat": "anon 1\nfile 700\n",
		}, cgroup.Tree{Kind: cgroup.V2, Memory: true}, 5000, 700},
		{"a kernel without the mark", map[string]string{"pitchpipe/a.1/memory.stat": "file 700\n"}, cgroup.Tree{Kind: cgroup.V2, Memory: true}, 0, 700},
		{"a tree without the controller", map[string]string{"pitchpipe/a.1/memory.peak": "5000\n"}, cgroup.Tree{Kind: cgroup.V2}, 0, 0},
	} {
		tt.tree.Root = fakeTree(t, tt.files)
		if tt.tree.Kind == cgroup.V2 {
			tt.tree.Unified = tt.tree.Root
		}
		leaf := tt.tree.Open("a.1")
		if leaf.Peak() != tt.peak || leaf.Cache() != tt.cache {
			t.Errorf("%s: peak %d, cache %d; want %d and %d", tt.name, leaf.Peak(), leaf.Cache(), tt.peak, tt.cache)
		}
	}
}

// realV2 makes a cgroup in a real hierarchy of version 2 and takes it for the root,
// as one that was delegated is. Which controllers it has is the machine's matter.
func realV2(t *testing.T) string {
	t.Helper()
	base := mount
	if _, err := os.Stat(filepath.Join(base, "cgroup.controllers")); err != nil {
		base = filepath.Join(mount, "unified")
	}
	root := filepath.Join(base, fmt.Sprintf("leaftest-v2-%d", os.Getpid()))
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Skip("no version 2 that this process may use: ", err)
	}
	t.Cleanup(func() {
		for _, dir := range []string{filepath.Join(root, cgroup.Parent), root} {
			if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Error(err)
			}
		}
	})
	return root
}

func TestALeafOfARealVersion2ConfinesWhatItCan(t *testing.T) {
	t.Parallel()
	tree := cgroup.Probe(realV2(t))
	if tree.Kind != cgroup.V2 || (tree.Cpuset && tree.Memory) != (tree.Reason == "") {
		t.Fatalf("tree %+v, want version 2, with a reason where something lacks", tree)
	}
	limits := cgroup.Limits{CPUs: tree.CPUs(), MemoryBytes: 256 << 20}
	leaf, err := tree.Create(t.Context(), "job.1", limits)
	if err != nil {
		t.Fatal(err)
	}
	// Its session survives the end of what started it, and the leaf does not care.
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read go; setsid sleep 1000 & exec sleep 1000")
	pids := begun(t, leaf, cmd, 2)
	if len(pids) != 2 {
		t.Errorf("processes %v, want two", pids)
	}
	if _, err := tree.Create(t.Context(), "job.1", limits); !errors.Is(err, cgroup.ErrInUse) {
		t.Errorf("a second Create: %v, want %v", err, cgroup.ErrInUse)
	}
	if err := leaf.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended well, want killed")
	}
	if err := leaf.Remove(t.Context()); err != nil || len(leaf.Dirs()) > 0 {
		t.Errorf("left: %v (%v)", leaf.Dirs(), err)
	}
}

// begun starts a command in a leaf and returns its processes once there are so many.
func begun(t *testing.T, leaf cgroup.Leaf, cmd *exec.Cmd, processes int) (pids []int) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := leaf.Add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); len(pids) < processes && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if pids, err = leaf.Pids(); err != nil {
			t.Fatal(err)
		}
	}
	return pids
}

func realTree(t *testing.T) cgroup.Tree {
	t.Helper()
	tree := cgroup.Probe(mount)
	if tree.Kind == cgroup.None {
		t.Skip("no cgroups that this process may use: ", tree.Reason)
	}
	return tree
}

func TestALeafConfinesAndEnds(t *testing.T) {
	t.Parallel()
	tree := realTree(t)
	name := fmt.Sprintf("leaftest-%d.1", os.Getpid())
	limits := cgroup.Limits{MemoryBytes: 256 << 20}
	if cpus := tree.CPUs(); len(cpus) > 0 {
		limits.CPUs = cpus[len(cpus)-1:]
	}
	leaf, err := tree.Create(t.Context(), name, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(leaf.Kill(context.Background()), leaf.Remove(context.Background())); err != nil {
			t.Error(err)
		}
		if left := leaf.Dirs(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
	// A process that starts others, some in their own sessions.
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "read go; sleep 1000 & setsid sleep 1000 & exec sleep 1000")
	pids := begun(t, leaf, cmd, 3)
	if len(pids) != 3 || !slices.Contains(pids, cmd.Process.Pid) {
		t.Fatalf("processes %v, want three with %d", pids, cmd.Process.Pid)
	}
	if tree.Cpuset && len(limits.CPUs) == 1 {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if want := fmt.Sprintf("Cpus_allowed_list:\t%d\n", limits.CPUs[0]); err != nil || !strings.Contains(string(status), want) {
			t.Errorf("status %s (%v), want %q", status, err, want)
		}
	}
	if _, err := tree.Create(t.Context(), name, limits); !errors.Is(err, cgroup.ErrInUse) {
		t.Errorf("a second Create: %v, want %v", err, cgroup.ErrInUse)
	}
	if err := leaf.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process ended well, want killed")
	}
}

func TestALeafThatIsNotThereHoldsNothing(t *testing.T) {
	t.Parallel()
	leaf := realTree(t).Open("never-made.1")
	pids, err := leaf.Pids()
	if err := errors.Join(err, leaf.Kill(t.Context()), leaf.Remove(t.Context())); err != nil || len(pids) > 0 || leaf.OOMKills() != 0 {
		t.Errorf("pids %v, kills %d, error %v; want nothing", pids, leaf.OOMKills(), err)
	}
}
