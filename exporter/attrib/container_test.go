package attrib_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

// The ids of two containers.
var (
	boxA = strings.Repeat("a1", 32)
	boxB = strings.Repeat("b2", 32)
)

func nomadEnv(alloc, task string) string {
	return "PATH=/bin\x00NOMAD_ALLOC_ID=" + alloc + "\x00NOMAD_TASK_NAME=" + task + "\x00"
}

// Docker's cgroups as its two drivers make them under v1 and v2, next to the empty one
// that Nomad makes for each task.
func TestADockerTaskOfNomadIsFoundByItsContainer(t *testing.T) {
	t.Parallel()
	const own = "nomad.slice/share.slice/" + alloc + ".train.scope"
	for _, tc := range []struct {
		name   string
		tree   map[string]string
		member string // /proc/30/cgroup
		dirs   []string
	}{
		{
			"v2, cgroups of systemd",
			map[string]string{
				"unified/system.slice/docker-" + boxA + ".scope/cgroup.procs": "30\n31\n", "unified/" + own + "/cgroup.procs": "",
				"unified/system.slice/docker.service/cgroup.procs": "7\n",
			},
			"0::/system.slice/docker-" + boxA + ".scope\n",
			[]string{"unified"},
		},
		{
			"v2, cgroups of Docker's own",
			map[string]string{"unified/docker/" + boxA + "/cgroup.procs": "30\n31\n", "unified/" + own + "/cgroup.procs": ""},
			"0::/docker/" + boxA + "\n",
			[]string{"unified"},
		},
		{
			"v1, cgroups of systemd",
			map[string]string{
				"memory/system.slice/docker-" + boxA + ".scope/cgroup.procs": "30\n31\n", "cpuacct/system.slice/docker-" + boxA + ".scope/cgroup.procs": "30\n31\n",
				"freezer/nomad/" + alloc + ".train/cgroup.procs": "",
			},
			"4:memory:/system.slice/docker-" + boxA + ".scope\n2:cpuacct:/system.slice/docker-" + boxA + ".scope\n0::/\n",
			[]string{"memory", "cpuacct"},
		},
		{
			"v1, cgroups of Docker's own, in a container of whose cgroup there is one below",
			map[string]string{
				"memory/docker/" + boxA + "/cgroup.procs": "30\n", "memory/docker/" + boxA + "/inner/cgroup.procs": "31\n",
				"freezer/nomad/" + alloc + ".train/cgroup.procs": "",
			},
			"4:memory:/docker/" + boxA + "/inner\n0::/\n",
			[]string{"memory"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			root := hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys")}
			sandbox.Plant(t, root.Cgroup(), tc.tree)
			sandbox.Plant(t, root.Cgroup(), map[string]string{
				"unified/cgroup.controllers": "", "memory/cgroup.procs": "", "cpuacct/cgroup.procs": "", "freezer/cgroup.procs": "",
			})
			sandbox.Plant(t, root.Pid(30), map[string]string{"cgroup": tc.member, "stat": "30 (x) S 1 1", "environ": nomadEnv(alloc, "train"), "cmdline": "x\x00"})
			sandbox.Plant(t, root.Pid(31), map[string]string{"cgroup": tc.member, "stat": "31 (x) S 30 1", "environ": "", "cmdline": "x\x00"})
			s := attrib.NewScanner(root, attrib.TrustOwn)
			for range 3 {
				found := s.Scan(t.Context())
				if len(found) != 1 {
					t.Fatalf("found %+v, want one job", found)
				}
				f := found[0]
				if f.Key != (attrib.Key{Manager: attrib.Nomad, ID: alloc + ".train", Attempt: 1}) || !f.Confirmed {
					t.Errorf("found %+v", f)
				}
				if diff := cmp.Diff([]int{30, 31}, f.Processes()); diff != "" {
					t.Errorf("processes (-want +got):\n%s", diff)
				}
				for _, name := range tc.dirs {
					if !strings.Contains(f.Dirs[name], boxA) || f.Birth[name] == 0 {
						t.Errorf("its %s is %q", name, f.Dirs[name])
					}
				}
			}
			if key, ok := s.Locate(30, 0); !ok || key.ID != alloc+".train" {
				t.Errorf("process 30 is in %v, %v", key, ok)
			}
		})
	}
}

func TestAContainerIsATasksOnlyWhereItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys")}
	box := func(id, pid string) map[string]string {
		return map[string]string{"docker/" + id + "/cgroup.procs": pid + "\n"}
	}
	sandbox.Plant(t, root.Cgroup(), map[string]string{"cgroup.controllers": ""})
	sandbox.Plant(t, root.Cgroup(), box(boxA, "30"))
	sandbox.Plant(t, root.Pid(30), map[string]string{"cgroup": "0::/docker/" + boxA + "\n", "stat": "30 (x) S 1 1", "environ": nomadEnv(alloc, "train"), "cmdline": "x\x00"})
	s := attrib.NewScanner(root, attrib.TrustOwn)
	look := func() (dirs []string) {
		for _, f := range s.Scan(t.Context()) {
			dirs = append(dirs, filepath.Base(f.Dirs["unified"]))
		}
		return dirs
	}
	if got := look(); len(got) != 1 || got[0] != boxA {
		t.Fatalf("found in %v", got)
	}
	// Another container says that it is the same task, and one is of no task.
	sandbox.Plant(t, root.Cgroup(), box(boxB, "40"))
	sandbox.Plant(t, root.Pid(40), map[string]string{"cgroup": "0::/docker/" + boxB + "\n", "stat": "40 (x) S 1 1", "environ": nomadEnv(alloc, "train"), "cmdline": "x\x00"})
	sandbox.Plant(t, root.Cgroup(), box(strings.Repeat("c3", 32), "50"))
	sandbox.Plant(t, root.Pid(50), map[string]string{"cgroup": "0::/\n", "stat": "50 (x) S 1 1", "environ": "PATH=/bin\x00", "cmdline": "x\x00"})
	for range 15 {
		if got := look(); len(got) != 1 || got[0] != boxA {
			t.Fatalf("found in %v, want the first container alone", got)
		}
	}
	// It ends; Nomad's own cgroup of the task, which is empty and stays for a while, does
	// not begin the job again.
	sandbox.Plant(t, root.Cgroup(), map[string]string{"nomad.slice/share.slice/" + alloc + ".train.scope/cgroup.procs": ""})
	look()
	if err := os.Rename(root.Cgroup("docker", boxA), filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if got := look(); len(got) != 0 {
			t.Errorf("found in %v after its container went", got)
		}
	}
	// An exporter that does not read environments has no such jobs.
	sandbox.Plant(t, root.Cgroup(), box(boxA, "30"))
	if got := attrib.NewScanner(root, attrib.TrustNone).Scan(t.Context()); len(got) != 1 || len(got[0].Processes()) != 0 {
		t.Errorf("found %+v, want Nomad's own cgroup alone", got)
	}
}

func FuzzParseTask(f *testing.F) {
	f.Add([]byte(nomadEnv(alloc, "train")))
	f.Add([]byte("NOMAD_ALLOC_ID=x\x00NOMAD_TASK_NAME=../.."))
	f.Fuzz(func(t *testing.T, data []byte) {
		if id, ok := attrib.ParseTask(data); ok && (len(id) < 38 || strings.ContainsAny(id, "/\n")) {
			t.Errorf("ParseTask(%q) = %q", data, id)
		}
	})
}
