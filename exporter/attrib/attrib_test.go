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

const alloc = "8a7f2c1e-0b1d-4c56-9c3e-1f2e3d4c5b6a"

func TestPathsNameTheirJob(t *testing.T) {
	t.Parallel()
	key := func(manager, id string, attempt int) attrib.Key {
		return attrib.Key{Manager: manager, ID: id, Attempt: attempt}
	}
	for _, tc := range []struct {
		name string
		path string
		want attrib.Owner
	}{
		{"a local job", "/pitchpipe/17.2", attrib.Owner{Key: key("local", "17", 2), Base: "/pitchpipe/17.2"}},
		{"a local job whose id has dots", "/pitchpipe/a.b.3", attrib.Owner{Key: key("local", "a.b", 3), Base: "/pitchpipe/a.b.3"}},
		{"below a local job", "/pitchpipe/17.2/inner/x", attrib.Owner{Key: key("local", "17", 2), Base: "/pitchpipe/17.2"}},
		{"a local job in a delegated tree", "/user.slice/u/pitchpipe/17.2", attrib.Owner{Key: key("local", "17", 2), Base: "/user.slice/u/pitchpipe/17.2"}},
		{"a Slurm step under v1", "/slurm/uid_1001/job_42/step_0/task_3", attrib.Owner{Key: key("slurm", "42", 1), Base: "/slurm/uid_1001/job_42", UID: 1001, HasUID: true}},
		{"one of several slurmd under v1", "/slurm_node1/uid_0/job_42", attrib.Owner{Key: key("slurm", "42", 1), Base: "/slurm_node1/uid_0/job_42", HasUID: true}},
		{"a Slurm step under v2", "/system.slice/slurmstepd.scope/job_42/step_batch/user/task_0", attrib.Owner{Key: key("slurm", "42", 1), Base: "/system.slice/slurmstepd.scope/job_42"}},
		{"one of several slurmd under v2", "/system.slice/node1_slurmstepd.scope/job_42", attrib.Owner{Key: key("slurm", "42", 1), Base: "/system.slice/node1_slurmstepd.scope/job_42"}},
		{"a configured slice", "/hpc.slice/slurmstepd.scope/job_42", attrib.Owner{Key: key("slurm", "42", 1), Base: "/hpc.slice/slurmstepd.scope/job_42"}},
		{"a Slurm job named by its SLUID", "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00/step_0", attrib.Owner{Key: key("slurm", "s5K1KKYAYG5D00", 1), Base: "/system.slice/slurmstepd.scope/s5K1KKYAYG5D00", Alias: true}},
		{"below a container of Docker", "/system.slice/docker-" + boxA + ".scope/inner", attrib.Owner{Key: key("nomad", boxA, 1), Base: "/system.slice/docker-" + boxA + ".scope", Alias: true}},
		{"a Nomad task on shared cores", "/nomad.slice/share.slice/" + alloc + ".train.scope", attrib.Owner{Key: key("nomad", alloc+".train", 1), Base: "/nomad.slice/share.slice/" + alloc + ".train.scope"}},
		{"a Nomad task on reserved cores", "/nomad.slice/reserve.slice/" + alloc + ".train.scope/x", attrib.Owner{Key: key("nomad", alloc+".train", 1), Base: "/nomad.slice/reserve.slice/" + alloc + ".train.scope"}},
		{"a task of an older Nomad", "/nomad.slice/" + alloc + "-train.scope", attrib.Owner{Key: key("nomad", alloc+".train", 1), Base: "/nomad.slice/" + alloc + "-train.scope"}},
		{"a Nomad task under v1", "/nomad/" + alloc + ".train", attrib.Owner{Key: key("nomad", alloc+".train", 1), Base: "/nomad/" + alloc + ".train"}},
		{"a Nomad task with a cpuset under v1", "/nomad/reserve/" + alloc + ".train", attrib.Owner{Key: key("nomad", alloc+".train", 1), Base: "/nomad/reserve/" + alloc + ".train"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, ok := attrib.ParsePath(tc.path)
			if !ok {
				t.Fatalf("ParsePath(%q): no job", tc.path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ParsePath(%q) (-want +got):\n%s", tc.path, diff)
			}
		})
	}
}

func TestPathsOfNoJob(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"", "/", "/pitchpipe", "/pitchpipe/17", "/pitchpipe/.1", "/pitchpipe/17.0", "/pitchpipe/17.01", "/pitchpipe/17.x",
		"/slurm", "/slurm/uid_1", "/slurm/uid_x/job_4", "/slurm/uid_1/step_4", "/slurmish/uid_1/job_4",
		"/system.slice/slurmstepd.scope/system", "/system.slice/slurmstepd.scope/s5K1KKYAYG5D0", // too short
		"/system.slice/slurmstepd.scope/s5K1KKYAYG5DIL", // I and L are not in the alphabet
		"/nomad/share", "/nomad/" + alloc, "/nomad.slice/share.slice", "/nomad.slice/" + alloc + ".train",
		"/nomad/8A7f2c1e-0b1d-4c56-9c3e-1f2e3d4c5b6a.train", "/system.slice/ssh.service",
	} {
		if got, ok := attrib.ParsePath(path); ok {
			t.Errorf("ParsePath(%q) = %+v, want no job", path, got)
		}
	}
}

func FuzzParsePath(f *testing.F) {
	f.Add("/pitchpipe/17.2/x")
	f.Add("/slurm/uid_1001/job_42/step_0")
	f.Add("/docker/" + boxA + "/inner")
	f.Add("/nomad.slice/share.slice/" + alloc + ".train.scope")
	f.Fuzz(func(t *testing.T, path string) {
		o, ok := attrib.ParsePath(path)
		if !ok {
			return
		}
		if o.Key.ID == "" || o.Key.Attempt < 1 || strings.Contains(o.Key.ID, "/") {
			t.Errorf("ParsePath(%q) = %+v", path, o)
		}
		again, ok := attrib.ParsePath(o.Base)
		if !ok || again != o {
			t.Errorf("ParsePath(%q) = %+v, but of its base %q = %+v", path, o, o.Base, again)
		}
	})
}

func FuzzParseEnviron(f *testing.F) {
	f.Add([]byte("A=b\x00PITCHPIPE_JOB_ID=7\x00PITCHPIPE_ATTEMPT=2\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if key, ok := attrib.ParseEnviron(data); ok && (key.ID == "" || key.Attempt < 1) {
			t.Errorf("ParseEnviron(%q) = %+v", data, key)
		}
	})
}

func TestScanFindsJobsInEveryHierarchy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys")}
	sandbox.Plant(t, root.Cgroup(), map[string]string{
		"unified/cgroup.controllers":                                         "",
		"unified/pitchpipe/7.2/cgroup.procs":                                 "10\n11\n",
		"unified/system.slice/a.service/pitchpipe/9.1/cgroup.procs":          "66\n", // in somebody's own subtree
		"memory/cgroup.procs":                                                "",
		"memory/pitchpipe/7.2/cgroup.procs":                                  "10\n",
		"memory/slurm/uid_1001/job_42/cgroup.procs":                          "",
		"memory/slurm/uid_1001/job_42/step_0/cgroup.procs":                   "20\n",
		"memory/slurm/uid_1001/job_42/step_0/task_0/cgroup.procs":            "21\n0\n",
		"unified/nomad.slice/share.slice/" + alloc + ".t.scope/cgroup.procs": "30\n",
	})
	sandbox.Plant(t, root.Proc(), map[string]string{
		"10/environ": envOf("7", "2"), "10/cgroup": "0::/pitchpipe/7.2\n", "10/stat": "10 (a b) S 1 1",
		"50/environ": envOf("55", "3"), "50/cgroup": "0::/user.slice\n", "50/stat": "50 (x) S 1 1",
		"51/environ": "", "51/cgroup": "0::/user.slice\n", "51/stat": "51 (a) b) S 50 50", // its parent is in the job
		"70/environ": envOf("7", "2"), "70/cgroup": "0::/user.slice\n", "70/stat": "70 (z) S 1 1",
		"60/environ": "HOME=/\x00", "60/cgroup": "0::/\n", "60/stat": "60 (y) S 1 1",
		"66/cgroup": "0::/system.slice/a.service/pitchpipe/9.1\n", "66/environ": "", "66/stat": "66 (y) S 1 1",
		"21/cgroup": "4:memory:/slurm/uid_1001/job_42/step_0/task_0\n0::/\n", "21/environ": "",
	})
	s := attrib.NewScanner(root, attrib.TrustAny)
	s.Scan(t.Context())
	got := map[string]attrib.Found{}
	pids := map[string][]int{}
	for _, f := range s.Scan(t.Context()) { // parents may be seen after their children: twice
		got[f.Key.String()] = f
		pids[f.Key.String()] = f.Processes()
	}
	wantPids := map[string][]int{
		"local/7.2": {10, 11}, "local/55.3": {50, 51}, "slurm/42.1": {20, 21}, "nomad/" + alloc + ".t.1": {30},
	}
	sortInts := func(m map[string][]int) map[string][]int {
		for k, v := range m {
			if k == "local/55.3" && len(v) == 2 && v[0] > v[1] {
				v[0], v[1] = v[1], v[0]
			}
		}
		return m
	}
	if diff := cmp.Diff(wantPids, sortInts(pids)); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	if f := got["slurm/42.1"]; !f.HasUID || f.UID != 1001 {
		t.Errorf("Slurm job's user: %+v", f)
	}
	if n := len(got["local/7.2"].Dirs); n != 2 {
		t.Errorf("local/7.2 has %d directories, want 2: %v", n, got["local/7.2"].Dirs)
	}
	me := uint32(os.Getuid())
	for _, tc := range []struct {
		name string
		pid  int
		uid  uint32
		want string
	}{
		{"by its cgroup", 10, me + 1, "local/7.2"},
		{"by a Slurm task's cgroup", 21, 1001, "slurm/42.1"},
		{"by its environment", 50, me, "local/55.3"},
		{"by its parent's environment", 51, me, "local/55.3"},
		{"not by an environment that another user wrote", 50, me + 1, ""},
		{"not by an environment that names a job with a cgroup", 70, me, ""},
		{"not by a look-alike in somebody's own subtree", 66, me, ""},
		{"not where nothing names a job", 60, me, ""},
		{"not where there is no process", 999, me, ""},
	} {
		key, ok := s.Locate(tc.pid, tc.uid)
		if ok != (tc.want != "") || ok && key.String() != tc.want {
			t.Errorf("Locate %s: pid %d = %v, %v; want %q", tc.name, tc.pid, key, ok, tc.want)
		}
	}
}

// envOf is the environ file of a process of a job.
func envOf(id, attempt string) string {
	return "HOME=/\x00PITCHPIPE_JOB_ID=" + id + "\x00PITCHPIPE_ATTEMPT=" + attempt + "\x00"
}

func TestScanForgetsJobsThatAreGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys")}
	sandbox.Plant(t, root.Proc(), map[string]string{
		"50/environ": envOf("55", "3"), "50/cgroup": "0::/user.slice\n", "50/stat": "50 (x) S 1 1",
	})
	s := attrib.NewScanner(root, attrib.TrustAny)
	if got := s.Scan(t.Context()); len(got) != 1 {
		t.Fatalf("got %+v, want one job", got)
	}
	if err := os.RemoveAll(root.Proc("50")); err != nil {
		t.Fatal(err)
	}
	if got := s.Scan(t.Context()); len(got) != 0 {
		t.Errorf("got %+v, want none", got)
	}
}
