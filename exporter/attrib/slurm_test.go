package attrib_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

const sluid = "s5K1KKYAYG5D00"

// host is a generated tree with the owners of its files.
type host struct {
	t      *testing.T
	root   hostfs.Root
	stepd  string // Slurm's daemon
	owners map[string]uint32
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir := t.TempDir()
	h := &host{
		t: t, root: hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys")},
		stepd: filepath.Join(dir, "sbin", "slurmstepd"), owners: map[string]uint32{},
	}
	sandbox.Plant(t, dir, map[string]string{"sbin/slurmstepd": "", "sbin/su": "", "proc/stat": ""})
	return h
}

// cgroups plants cgroup files; each directory has its list of processes.
func (h *host) cgroups(files map[string]string) {
	h.t.Helper()
	sandbox.Plant(h.t, h.root.Cgroup(), files)
	err := filepath.WalkDir(h.root.Cgroup(), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() || path == h.root.Cgroup() {
			return err
		}
		list := filepath.Join(path, "cgroup.procs")
		if _, err := os.Stat(list); err == nil {
			return nil
		}
		return os.WriteFile(list, nil, 0o600)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) scanner(trust attrib.Trust) *attrib.Scanner {
	s := attrib.NewScanner(h.root, trust)
	s.Own(0, h.owners)
	return s
}

// proc is a process of the tree; zero fields are those of a shell of user 1000.
type proc struct {
	pid, parent int
	uid         uint32
	real        string // real and saved user; empty = uid
	cmdline     string
	exe         string
	environ     string
	cgroup      string
	start       int // ticks; 0 = its pid
}

func (h *host) process(p proc) {
	h.t.Helper()
	if p.start == 0 {
		p.start = p.pid
	}
	born := p.real
	if born == "" {
		born = strconv.Itoa(int(p.uid))
	}
	dir := strconv.Itoa(p.pid)
	sandbox.Plant(h.t, h.root.Proc(), map[string]string{
		dir + "/stat":    fmt.Sprintf("%d (a) b) S %d 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0", p.pid, p.parent, p.start),
		dir + "/status":  fmt.Sprintf("Name:\tx\nUid:\t%s\t%d\t%s\t%d\n", born, p.uid, born, p.uid),
		dir + "/cmdline": p.cmdline, dir + "/environ": p.environ, dir + "/cgroup": p.cgroup + "0::/\n",
	})
	if p.exe != "" {
		if err := os.Symlink(p.exe, h.root.Pid(p.pid, "exe")); err != nil {
			h.t.Fatal(err)
		}
	}
	h.owners[h.root.Pid(p.pid)] = p.uid
}

func (h *host) daemon(pid int, job string) {
	h.process(proc{pid: pid, parent: 1, cmdline: "slurmstepd: [" + job + "]\x00\x00", exe: h.stepd})
}

func slurmEnv(job, restarts string) string {
	env := "HOME=/\x00SLURM_JOB_ID=" + job + "\x00"
	if restarts != "" {
		env += "SLURM_RESTART_COUNT=" + restarts + "\x00"
	}
	return env
}

func scan(t *testing.T, s *attrib.Scanner) map[string]attrib.Found {
	t.Helper()
	got := map[string]attrib.Found{}
	for _, f := range s.Scan(t.Context()) {
		got[f.Key.String()] = f
	}
	return got
}

func names(jobs map[string]attrib.Found) []string {
	out := []string{}
	for name := range jobs {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func TestASlurmJobIsFoundInEveryLayoutOfCgroups(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		files  map[string]string
		hasUID bool
		pids   []int
	}{
		{"v1", map[string]string{
			"memory/cgroup.procs":                                           "",
			"memory/slurm/uid_1001/job_42/cgroup.procs":                     "",
			"memory/slurm/uid_1001/job_42/step_batch/cgroup.procs":          "20\n",
			"memory/slurm/uid_1001/job_42/step_batch/task_0/cgroup.procs":   "21\n",
			"freezer/cgroup.procs":                                          "",
			"freezer/slurm/uid_1001/job_42/step_batch/cgroup.procs":         "20\n21\n",
			"freezer/slurm/uid_1001/job_42/step_extern/cgroup.procs":        "22\n",
			"cpuset/cgroup.procs":                                           "",
			"cpuset/slurm/uid_1001/job_42/step_batch/task_0/cgroup.procs":   "21\n",
			"cpuset/slurm/system/cgroup.procs":                              "5\n",
			"unified/cgroup.controllers":                                    "",
			"unified/system.slice/slurmd.service/job_42/x/cgroup.procs":     "5\n",
			"unified/system.slice/slurmd.service/slurm/uid_0/job_7/x/procs": "",
		}, true, []int{20, 21, 22}},
		{"v1, one of several slurmd", map[string]string{
			"memory/cgroup.procs": "",
			"memory/slurm_n1/uid_1001/job_42/step_0/task_0/cgroup.procs": "21\n",
		}, true, []int{21}},
		{"v2", map[string]string{
			"cgroup.controllers": "cpu memory\n",
			"system.slice/slurmstepd.scope/system/cgroup.procs":                          "5\n",
			"system.slice/slurmstepd.scope/job_42/step_batch/slurm/cgroup.procs":         "20\n",
			"system.slice/slurmstepd.scope/job_42/step_batch/user/task_0/cgroup.procs":   "21\n",
			"system.slice/slurmstepd.scope/job_42/step_0/user/task_special/cgroup.procs": "22\n",
		}, false, []int{20, 21, 22}},
		{"v2, one of several slurmd", map[string]string{
			"cgroup.controllers": "cpu memory\n",
			"system.slice/n1_slurmstepd.scope/job_42/step_batch/user/task_0/cgroup.procs": "21\n",
		}, false, []int{21}},
		{"v2, in a slice of a slice, of one of several slurmd", map[string]string{
			"cgroup.controllers": "cpu memory\n",
			"hpc.slice/hpc-batch.slice/n1_slurmstepd.scope/job_42/step_batch/user/task_0/cgroup.procs": "21\n",
			"hpc.slice/other-batch.slice/slurmstepd.scope/job_43/step_batch/user/task_0/cgroup.procs":  "21\n", // systemd nests none so
			"user.slice/user-1001.slice/slurmstepd.scope/job_44/step_batch/user/task_0/cgroup.procs":   "21\n", // a user's
		}, false, []int{21}},
		{"v2, named by its SLUID", map[string]string{
			"cgroup.controllers": "cpu memory\n",
			"system.slice/slurmstepd.scope/" + sluid + "/step_batch/slurm/cgroup.procs":       "20\n",
			"system.slice/slurmstepd.scope/" + sluid + "/step_batch/user/task_0/cgroup.procs": "21\n",
		}, false, []int{20, 21}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.cgroups(tc.files)
			h.daemon(20, "42.batch")
			h.process(proc{pid: 21, parent: 20, uid: 1001, environ: slurmEnv("42", "2")})
			jobs := scan(t, h.scanner(attrib.TrustOwn))
			if diff := cmp.Diff([]string{"slurm/42.1"}, names(jobs)); diff != "" {
				t.Fatalf("jobs (-want +got):\n%s", diff)
			}
			f := jobs["slurm/42.1"]
			if diff := cmp.Diff(tc.pids, f.Processes()); diff != "" {
				t.Errorf("processes (-want +got):\n%s", diff)
			}
			if f.HasUID != tc.hasUID || f.HasUID && f.UID != 1001 || !f.Confirmed {
				t.Errorf("found %+v", f)
			}
			if f.Attempt != 3 {
				t.Errorf("attempt %d, want 3: the job was requeued twice", f.Attempt)
			}
		})
	}
}

func TestASlurmTreeThatAUserBuiltIsNone(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.cgroups(map[string]string{
		"memory/cgroup.procs":                                          "",
		"memory/slurm/uid_1001/job_42/step_0/cgroup.procs":             "21\n",
		"memory/slurm/uid_1001/job_42/step_0/slurm/uid_0/job_1/x":      "", // a step may be its user's
		"memory/slurm_mine/uid_0/job_2/cgroup.procs":                   "66\n",
		"memory/slurm_open/uid_0/job_3/cgroup.procs":                   "66\n",
		"memory/user.slice/slurm/uid_0/job_4/cgroup.procs":             "66\n",
		"memory/user.slice/mine_slurmstepd.scope/job_5/cgroup.procs":   "66\n",
		"memory/slurm/uid_1001/job_6/cgroup.procs":                     "66\n",
		"memory/user.slice/u.service/slurmstepd.scope/job_7/x":         "",
		"memory/nomad/" + alloc + ".mine/cgroup.procs":                 "66\n",
		"memory/somebody/slurm/uid_0/job_8/step_batch/cgroup.procs":    "66\n",
		"memory/slurm/uid_1001/job_42/step_0/task_0/cgroup.procs":      "",
		"memory/slurm/uid_1001/job_42/step_0/task_0/mine/cgroup.procs": "23\n",
	})
	for _, dir := range []string{"slurm_mine", "user.slice/mine_slurmstepd.scope", "slurm/uid_1001/job_6", "slurm/uid_1001/job_42/step_0", "nomad/" + alloc + ".mine"} {
		h.owners[h.root.Cgroup("memory", dir)] = 1001
	}
	if err := os.Chmod(h.root.Cgroup("memory", "slurm_open"), 0o777); err != nil { //nolint:gosec // that is the test
		t.Fatal(err)
	}
	s := h.scanner(attrib.TrustOwn)
	jobs := scan(t, s)
	if diff := cmp.Diff([]string{"slurm/42.1"}, names(jobs)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	for pid, path := range map[int]string{
		66: "/slurm_mine/uid_0/job_2", 67: "/user.slice/slurm/uid_0/job_4", 68: "/slurm/uid_1001/job_6", 69: "/somebody/slurm/uid_0/job_8/step_batch",
	} {
		h.process(proc{pid: pid, parent: 1, uid: 1001, cgroup: "4:memory:" + path + "\n"})
		if key, ok := s.Locate(pid, 1001); ok {
			t.Errorf("a process in %s is in %v", path, key)
		}
	}
	h.process(proc{pid: 23, parent: 1, uid: 1001, cgroup: "4:memory:/slurm/uid_1001/job_42/step_0/slurm/uid_0/job_1\n"})
	if key, ok := s.Locate(23, 1001); !ok || key.ID != "42" {
		t.Errorf("a process below a job's own step is in %v, %v; want job 42", key, ok)
	}
}

func TestASLUIDWithoutANumberStaysTheName(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.cgroups(map[string]string{
		"cgroup.controllers": "cpu memory\n",
		"system.slice/slurmstepd.scope/" + sluid + "/step_0/user/task_0/cgroup.procs": "21\n",
	})
	h.process(proc{pid: 21, parent: 1, uid: 1001, cmdline: "slurmstepd: [7.batch]\x00", environ: slurmEnv("7", "")}) // a forged title
	s := h.scanner(attrib.TrustOwn)
	if jobs := scan(t, s); len(jobs) != 0 {
		t.Errorf("jobs %v before its number could be known", names(jobs))
	}
	var jobs map[string]attrib.Found
	for range 20 {
		jobs = scan(t, s)
	}
	if diff := cmp.Diff([]string{"slurm/" + sluid + ".1"}, names(jobs)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

// A process of the start before, such as a step that has not heard of its end, may still be
// about, or the exporter may not have looked in between.
func TestTheNextStartOfAJobWithoutACgroupIsRecognised(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, between, stays string }{
		{"no scan in between", "", ""},
		{"no scan in between, and a step stays", "", "a step"},
		{"its batch step was seen to be gone, and a step stays", "a look", "a step"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.daemon(200, "42.batch")
			h.process(proc{pid: 201, parent: 200, uid: 1000, environ: slurmEnv("42", "")})
			h.daemon(210, "42.0")
			h.process(proc{pid: 211, parent: 210, uid: 1000, environ: slurmEnv("42", "")})
			s := h.scanner(attrib.TrustNone)
			scan(t, s)
			before := scan(t, s)["slurm/42.1"]
			if again := scan(t, s)["slurm/42.1"]; before.Attempt != 1 || again.Attempt != 1 || again.Reborn(before) {
				t.Fatalf("attempt %d, then %d (anew: %v), want the first, and no other", before.Attempt, again.Attempt, again.Reborn(before))
			}
			gone := []int{200, 201}
			if c.stays == "" {
				gone = append(gone, 210, 211)
			}
			for _, pid := range gone {
				if err := os.RemoveAll(h.root.Pid(pid)); err != nil {
					t.Fatal(err)
				}
			}
			if c.between != "" {
				before = scan(t, s)["slurm/42.1"]
				if before.Attempt != 1 {
					t.Errorf("attempt %d while a step of it is about, want 1", before.Attempt)
				}
			}
			h.daemon(300, "42.batch")
			h.process(proc{pid: 301, parent: 300, uid: 1000, environ: slurmEnv("42", "1")})
			after := scan(t, s)["slurm/42.1"]
			if after.Attempt == 0 { // its script was not looked at before its daemon
				after = scan(t, s)["slurm/42.1"]
			}
			if after.Attempt != 2 || !after.Reborn(before) {
				t.Errorf("attempt %d, anew: %v; want the second, anew", after.Attempt, after.Reborn(before))
			}
		})
	}
}

func TestAJobWithoutACgroupIsFoundBelowItsStepDaemon(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.daemon(200, "42.batch")
	h.process(proc{pid: 201, parent: 200, uid: 1000, environ: slurmEnv("42", "1")})
	h.process(proc{pid: 202, parent: 201, uid: 1000, environ: envOf("7", "1")}) // names another job
	h.daemon(210, "42.0")
	h.process(proc{pid: 211, parent: 210, uid: 1000, environ: slurmEnv("42", "")})
	h.process(proc{pid: 100, parent: 1, uid: 1000, environ: slurmEnv("42", "")}) // only says so: it may speak for the job, but is not one of its processes
	s := h.scanner(attrib.TrustAny)
	scan(t, s)
	jobs := scan(t, s)
	if diff := cmp.Diff([]string{"slurm/42.1"}, names(jobs)); diff != "" {
		t.Fatalf("jobs (-want +got):\n%s", diff)
	}
	f := jobs["slurm/42.1"]
	pids := slices.Sorted(slices.Values(f.Processes()))
	if diff := cmp.Diff([]int{200, 201, 202, 210, 211}, pids); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	if f.Attempt != 2 || f.UID != 1000 || !f.HasUID || !f.Confirmed {
		t.Errorf("found %+v, want attempt 2 of user 1000", f)
	}
	h.process(proc{pid: 300, parent: 202, uid: 1000})                           // began after the scan
	h.process(proc{pid: 301, parent: 100, uid: 1000, environ: envOf("42", "")}) // names a Slurm job as if it were local
	if key, ok := s.Locate(100, 1001); ok {
		t.Errorf("another user speaks for %v", key)
	}
	for pid, want := range map[int]string{202: "slurm/42.1", 300: "slurm/42.1", 100: "slurm/42.1", 301: ""} {
		key, ok := s.Locate(pid, 1000)
		if ok != (want != "") || ok && key.String() != want {
			t.Errorf("Locate(%d) = %v, %v; want %q", pid, key, ok, want)
		}
	}
}

func TestTheUserOfAJobIsKnownOnceAProcessIsTheUsers(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.daemon(200, "42.batch")
	h.process(proc{pid: 201, parent: 200})
	s := h.scanner(attrib.TrustOwn)
	if f := scan(t, s)["slurm/42.1"]; f.HasUID || len(f.Pids) != 2 {
		t.Errorf("found %+v, want two processes of no user", f)
	}
	h.owners[h.root.Pid(201)] = 1000
	if f := scan(t, s)["slurm/42.1"]; !f.HasUID || f.UID != 1000 {
		t.Errorf("found %+v, want user 1000", f)
	}
}

func TestAProcessStaysInItsJobWhenItsParentEnds(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.daemon(200, "42.batch")
	h.process(proc{pid: 201, parent: 200, uid: 1000, environ: slurmEnv("42", "")})
	h.process(proc{pid: 202, parent: 201, uid: 1000})
	s := h.scanner(attrib.TrustOwn)
	scan(t, s)
	h.process202to(1, 202)
	if err := os.RemoveAll(h.root.Pid(201)); err != nil {
		t.Fatal(err)
	}
	if got := scan(t, s)["slurm/42.1"].Pids; !slices.Contains(got, 202) {
		t.Errorf("processes %v, want 202 among them", got)
	}
	if _, ok := s.Locate(202, 1000); !ok {
		t.Error("an orphan of the job is in no job")
	}
	if err := os.Rename(h.root.Pid(202), filepath.Join(t.TempDir(), "kept")); err != nil { // so that its inode is not used again
		t.Fatal(err)
	}
	h.process202to(1, 999) // another process under the same number
	if key, ok := s.Locate(202, 1000); ok {
		t.Errorf("a stranger under the number of a process that ended is in %v", key)
	}
	if got := scan(t, s)["slurm/42.1"].Pids; slices.Contains(got, 202) {
		t.Errorf("processes %v, want no 202 among them", got)
	}
}

func (h *host) process202to(parent, start int) {
	h.process(proc{pid: 202, parent: parent, uid: 1000, start: start})
}

func TestAProcessThatOnlyClaimsToBeAStepDaemonIsNone(t *testing.T) {
	t.Parallel()
	const title = "slurmstepd: [42.batch]\x00"
	h := newHost(t)
	su := filepath.Join(filepath.Dir(h.stepd), "su")
	linked := filepath.Join(t.TempDir(), "slurmstepd")
	theirs := filepath.Join(t.TempDir(), "slurmstepd")
	for _, file := range []string{linked, theirs} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(linked, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	for i, p := range []proc{
		{uid: 1000, cmdline: title, exe: h.stepd},            // a user's process
		{uid: 0, real: "1000", cmdline: title, exe: h.stepd}, // started by a user
		{uid: 0, cmdline: title, exe: su},                    // another program under that name
		{uid: 0, cmdline: title, exe: linked},                // a setuid one, linked
		{uid: 0, cmdline: title, exe: theirs},                // a user's file
		{uid: 0, cmdline: title},                             // it is unknown what it runs
		{uid: 0, cmdline: "slurmstepd\x00[42.batch]\x00", exe: h.stepd},
	} {
		p.pid, p.parent = 200+2*i, 1
		h.process(p)
		h.process(proc{pid: 201 + 2*i, parent: p.pid, uid: 1000, environ: slurmEnv("42", "")})
		if theirs == p.exe {
			h.owners[h.root.Pid(p.pid, "exe")] = 1000
		}
	}
	s := h.scanner(attrib.TrustOwn)
	scan(t, s)
	if jobs := scan(t, s); len(jobs) != 0 {
		t.Errorf("jobs %+v, want none", jobs)
	}
	for pid := 200; pid < 214; pid++ {
		if key, ok := s.Locate(pid, 1000); ok {
			t.Errorf("Locate(%d) = %v", pid, key)
		}
	}
}

func TestTheAttemptOfASlurmJobIsRead(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files map[string]string
		envs  map[int]string
		want  int
	}{
		{"the batch step of a first start has no count", map[string]string{"step_batch/task_0": "21"}, map[int]string{21: slurmEnv("42", "")}, 1},
		{"a requeued one has", map[string]string{"step_batch/task_0": "21"}, map[int]string{21: slurmEnv("42", "3")}, 4},
		{"other processes that have no count do not tell", map[string]string{"step_0/task_0": "21"}, map[int]string{21: slurmEnv("42", "")}, 0},
		{"other steps that have one do", map[string]string{"step_0/task_0": "21"}, map[int]string{21: slurmEnv("42", "1")}, 2},
		{"a step that has none shows that there was no requeue", map[string]string{"step_0/task_0": "21"}, map[int]string{21: slurmEnv("42", "") + "SLURM_STEP_ID=0\x00"}, 1},
		{"a count goes before none", map[string]string{"step_0": "21\n22"}, map[int]string{21: slurmEnv("42", "") + "SLURM_STEP_ID=0\x00", 22: slurmEnv("42", "1")}, 2},
		{"the batch step goes first", map[string]string{"step_0/task_0": "21", "step_batch": "22"}, map[int]string{21: slurmEnv("42", "7"), 22: slurmEnv("42", "")}, 1},
		{"an environment of another job does not tell", map[string]string{"step_batch/task_0": "21"}, map[int]string{21: slurmEnv("43", "3")}, 0},
		{"one that is cut off, since its process has just ended, does not tell", map[string]string{"step_batch/task_0": "21"}, map[int]string{21: slurmEnv("42", "") + "MODULEPA"}, 0},
		{"an environment before exec does not tell", map[string]string{"step_batch/task_0": "21"}, map[int]string{21: "HOME=/\x00"}, 0},
		{"a count that is none is left out", map[string]string{"step_0/task_0": "21"}, map[int]string{21: slurmEnv("42", "-1")}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.cgroups(map[string]string{"memory/cgroup.procs": "", "memory/slurm/uid_1000/job_42/cgroup.procs": ""})
			for path, pids := range tc.files {
				h.cgroups(map[string]string{"memory/slurm/uid_1000/job_42/" + path + "/cgroup.procs": pids + "\n"})
			}
			for pid, env := range tc.envs {
				h.process(proc{pid: pid, parent: 1, uid: 1000, environ: env})
			}
			if got := scan(t, h.scanner(attrib.TrustOwn))["slurm/42.1"].Attempt; got != tc.want {
				t.Errorf("attempt %d, want %d", got, tc.want)
			}
		})
	}
}

func TestACgroupThatWasMadeAnewIsAnotherStart(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	files := map[string]string{"memory/cgroup.procs": "", "memory/slurm/uid_1000/job_42/step_batch/cgroup.procs": "21\n"}
	h.cgroups(files)
	h.process(proc{pid: 21, parent: 1, uid: 1000, environ: slurmEnv("42", "")})
	s := h.scanner(attrib.TrustOwn)
	first := scan(t, s)["slurm/42.1"]
	again := scan(t, s)["slurm/42.1"]
	if again.Reborn(first) {
		t.Error("the same cgroup counts as another")
	}
	job := h.root.Cgroup("memory/slurm/uid_1000/job_42")
	if err := os.Rename(job, filepath.Join(t.TempDir(), "kept")); err != nil { // so that its inode is not used again
		t.Fatal(err)
	}
	h.cgroups(files)
	sandbox.Plant(t, h.root.Proc(), map[string]string{"21/environ": slurmEnv("42", "1")})
	second := scan(t, s)["slurm/42.1"]
	if !second.Reborn(first) || first.Attempt != 1 || second.Attempt != 2 {
		t.Errorf("attempt %d, then %d, reborn %v; want 1, 2, true", first.Attempt, second.Attempt, second.Reborn(first))
	}
}

// The daemon of a batch step lives on for seconds when its cgroups have gone, and cgroups of
// one job come and go one by one: the next start may begin before the last is gone.
func TestTheNextStartIsRecognisedBesideRemainsOfTheLast(t *testing.T) {
	t.Parallel()
	const job, step = "slurm/uid_1000/job_42", "slurm/uid_1000/job_42/step_batch/cgroup.procs"
	for _, c := range []struct {
		name    string
		between func(h *host)
	}{
		{"its batch daemon", func(h *host) { h.daemon(200, "42.batch") }},
		{"another hierarchy's cgroup", func(h *host) { h.cgroups(map[string]string{"devices/" + job + "/cgroup.procs": ""}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			h.cgroups(map[string]string{"devices/cgroup.procs": "", "memory/cgroup.procs": "", "memory/" + step: "21\n"})
			h.process(proc{pid: 21, parent: 1, uid: 1000, environ: slurmEnv("42", "")})
			s := h.scanner(attrib.TrustNone)
			was := scan(t, s)["slurm/42.1"]
			look := func(what string, anew bool, attempt int) {
				t.Helper()
				is, found := scan(t, s)["slurm/42.1"]
				if got := is.Reborn(was); !found || got != anew || is.Attempt != attempt {
					t.Errorf("%s: found %v, attempt %d, anew %v; want attempt %d, %v", what, found, is.Attempt, got, attempt, anew)
				}
				was = is
			}
			look("as it was", false, 1)
			c.between(h)
			look("both are there", false, 1)
			for _, gone := range []string{h.root.Pid(21), h.root.Cgroup("memory/" + job)} {
				// Not removed, so that its inode is not used again.
				if err := os.Rename(gone, filepath.Join(t.TempDir(), "kept")); err != nil {
					t.Fatal(err)
				}
			}
			look("its last remains", false, 1)
			if !was.Renewed() {
				t.Error("the next start seems impossible")
			}
			h.process(proc{pid: 31, parent: 1, uid: 1000, environ: slurmEnv("42", "1")})
			h.cgroups(map[string]string{"memory/" + step: "31\n"})
			look("the next start beside it", true, 2)
			look("and again", false, 2)
			if was.Renewed() {
				t.Error("another start seems possible")
			}
		})
	}
}

// Slurm forks its step daemon, and the fork has its file and title until it executes the job.
func TestAForkOfABatchDaemonIsNoNextStart(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.daemon(20, "42.batch")
	s := h.scanner(attrib.TrustNone)
	was := scan(t, s)["slurm/42.1"]
	h.process(proc{pid: 21, parent: 20, cmdline: "slurmstepd: [42.batch]\x00", exe: h.stepd})
	if is, found := scan(t, s)["slurm/42.1"]; !found || is.Reborn(was) || is.Renewed() {
		t.Errorf("found %t, another start %t, possible %t", found, is.Reborn(was), is.Renewed())
	}
}

func TestTrustSaysWhoseEnvironmentsAreBelieved(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	setuid := filepath.Join(t.TempDir(), "su")
	if err := os.WriteFile(setuid, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(setuid, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	h.process(proc{pid: 50, parent: 1, environ: envOf("5", "1"), exe: filepath.Join(filepath.Dir(h.stepd), "su")})
	h.process(proc{pid: 60, parent: 1, uid: 1000, environ: envOf("6", "1")})
	h.process(proc{pid: 70, parent: 1, environ: envOf("7", "1"), exe: setuid})
	for _, tc := range []struct {
		trust string
		want  []string
	}{
		{"own", []string{"local/5.1"}},
		{"any", []string{"local/5.1", "local/6.1", "local/7.1"}},
		{"off", []string{}},
	} {
		trust, err := attrib.ParseTrust(tc.trust)
		if err != nil {
			t.Fatal(err)
		}
		s := h.scanner(trust)
		if diff := cmp.Diff(tc.want, names(scan(t, s))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.trust, diff)
		}
		for pid, uid := range map[int]uint32{50: 0, 60: 1000, 70: 0} {
			key, ok := s.Locate(pid, uid)
			if want := slices.Contains(tc.want, fmt.Sprintf("local/%d.1", pid/10)); ok != want {
				t.Errorf("%s: Locate(%d) = %v, %v; want %v", tc.trust, pid, key, ok, want)
			}
		}
	}
	if _, err := attrib.ParseTrust("yes"); err == nil {
		t.Error("trust is yes")
	}
}

func FuzzParseTitle(f *testing.F) {
	f.Add([]byte("slurmstepd: [42.batch]\x00\x00"))
	f.Add([]byte("slurmstepd: [42+1.0]"))
	f.Add([]byte("slurmstepd: [sleep]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		job, name, ok := attrib.ParseTitle(data)
		if !ok {
			return
		}
		if _, err := strconv.ParseUint(job, 10, 32); err != nil || name == "" || strings.Contains(name, "/") {
			t.Errorf("ParseTitle(%q) = %q, %q", data, job, name)
		}
	})
}

func TestTitlesOfStepDaemons(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"slurmstepd: [42.batch]":            "42 batch",
		"slurmstepd: [42.extern]\x00\x00  ": "42 extern",
		"slurmstepd: [42.0]":                "42 0",
		"slurmstepd: [42+1.interactive]":    "42 interactive",
		"slurmstepd: [42]":                  "",
		"slurmstepd: [42.]":                 "",
		"slurmstepd: [x.batch]":             "",
		"slurmstepd: [42.batch] and more":   "",
		"slurmstepd [42.batch]":             "",
		"":                                  "",
	} {
		job, name, ok := attrib.ParseTitle([]byte(text))
		if got := strings.TrimSpace(job + " " + name); ok != (want != "") || ok && got != want {
			t.Errorf("ParseTitle(%q) = %q, %v; want %q", text, got, ok, want)
		}
	}
}
