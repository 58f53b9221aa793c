package attrib_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

// The trees are those that clients of 2.0.6 made, under v2 those that their source says.
func TestTasksOfNomadAreFoundAsItsClientsPlaceThem(t *testing.T) {
	t.Parallel()
	procs := func(dirs ...string) map[string]string {
		out := map[string]string{}
		for _, d := range dirs {
			out[d+"/cgroup.procs"] = "30\n31\n"
		}
		return out
	}
	const raw, own = "/nomad/" + alloc + ".train", "/nomad/reserve/" + alloc + ".train"
	for _, tc := range []struct {
		name   string
		tree   map[string]string
		member string // /proc/30/cgroup
		dirs   []string
	}{
		{
			"raw_exec on shared cores under v1, where cpuacct knows nothing of it",
			procs("freezer"+raw, "cpu"+raw, "memory"+raw),
			"6:freezer:" + raw + "\n4:memory:" + raw + "\n3:cpuset:/nomad/share\n2:cpuacct:/\n1:cpu:" + raw + "\n0::/\n",
			[]string{"cpu", "freezer", "memory"},
		},
		{
			"raw_exec on a core of its own under v1",
			procs("freezer"+raw, "cpu"+raw, "memory"+raw, "cpuset"+own),
			"6:freezer:" + raw + "\n4:memory:" + raw + "\n3:cpuset:" + own + "\n2:cpuacct:/\n1:cpu:" + raw + "\n0::/\n",
			[]string{"cpu", "cpuset", "freezer", "memory"},
		},
		{
			"exec under v1, with a v2 cgroup beside it",
			procs("freezer"+raw, "cpu"+raw, "cpuacct"+raw, "memory"+raw, "unified"+raw),
			"6:freezer:" + raw + "\n4:memory:" + raw + "\n3:cpuset:/nomad/share\n2:cpuacct:" + raw + "\n1:cpu:" + raw + "\n0::" + raw + "\n",
			[]string{"cpu", "cpuacct", "freezer", "memory", "unified"},
		},
		{
			"shared cores under v2",
			procs("unified/nomad.slice/share.slice/" + alloc + ".train.scope"),
			"0::/nomad.slice/share.slice/" + alloc + ".train.scope\n",
			[]string{"unified"},
		},
		{
			"a core of its own under v2",
			procs("unified/nomad.slice/reserve.slice/" + alloc + ".train.scope"),
			"0::/nomad.slice/reserve.slice/" + alloc + ".train.scope\n",
			[]string{"unified"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			root := hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys")}
			sandbox.Plant(t, root.Cgroup(), tc.tree)
			sandbox.Plant(t, root.Cgroup(), map[string]string{
				"unified/cgroup.controllers": "", "cpuset/nomad/share/cgroup.procs": "30\n31\n", "cpuacct/cgroup.procs": "30\n31\n",
				"freezer/cgroup.procs": "", "cpu/cgroup.procs": "", "memory/cgroup.procs": "", "cpuset/cgroup.procs": "",
			})
			for pid, of := range map[string]string{"30": "/usr/bin/python3\x00train.py\x00", "31": "/usr/bin/nomad\x00executor\x00{}\x00"} {
				sandbox.Plant(t, root.Proc(pid), map[string]string{"cgroup": tc.member, "stat": pid + " (x) S 1 1", "environ": "", "cmdline": of})
			}
			s := attrib.NewScanner(root, attrib.TrustOwn)
			found := s.Scan(t.Context())
			if len(found) != 1 {
				t.Fatalf("found %+v, want one job", found)
			}
			f := found[0]
			if f.Key != (attrib.Key{Manager: attrib.Nomad, ID: alloc + ".train", Attempt: 1}) || !f.Confirmed {
				t.Errorf("found %+v", f)
			}
			var dirs []string
			for name := range f.Dirs {
				dirs = append(dirs, name)
			}
			if diff := cmp.Diff(set(tc.dirs), set(dirs)); diff != "" {
				t.Errorf("hierarchies (-want +got):\n%s", diff)
			}
			// The executor starts the task from within its cgroups and leaves them again.
			if diff := cmp.Diff([]int{30}, f.Processes()); diff != "" {
				t.Errorf("processes (-want +got):\n%s", diff)
			}
			if key, ok := s.Locate(30, 0); !ok || key != f.Key {
				t.Errorf("process 30 is in %v, %v", key, ok)
			}
			// Long after the start no process is looked at so closely.
			long := time.Now().Add(-time.Hour)
			for _, d := range f.Dirs {
				if err := os.Chtimes(d, long, long); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Scan(t.Context())[0].Processes(); len(got) != 2 {
				t.Errorf("an hour later processes %v", got)
			}
		})
	}
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

func TestATaskWhoseCgroupIsMadeAnewIsRenewed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys")}
	const path = "nomad.slice/share.slice/" + alloc + ".train.scope"
	sandbox.Plant(t, root.Cgroup(), map[string]string{"cgroup.controllers": "", path + "/cgroup.procs": ""})
	s := attrib.NewScanner(root, attrib.TrustOwn)
	first := s.Scan(t.Context())[0]
	if first.Renewed() {
		t.Error("renewed at once")
	}
	if err := os.Rename(root.Cgroup(path), filepath.Join(dir, "old")); err != nil {
		t.Fatal(err)
	}
	if first.Renewed() {
		t.Error("renewed while it is gone")
	}
	sandbox.Plant(t, root.Cgroup(), map[string]string{path + "/cgroup.procs": ""})
	if !first.Renewed() {
		t.Error("not renewed")
	}
	second := s.Scan(t.Context())[0]
	if !second.Reborn(first) || second.Renewed() {
		t.Errorf("the next scan: reborn %v, renewed %v", second.Reborn(first), second.Renewed())
	}
}
