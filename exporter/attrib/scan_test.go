package attrib_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/sandbox"
)

// crowd is a node with jobs in v2 cgroups, and processes that are in none.
func crowd(tb testing.TB, jobs, processes int) hostfs.Root {
	tb.Helper()
	dir := tb.TempDir()
	root := hostfs.Root{ProcFS: filepath.Join(dir, "proc"), SysFS: filepath.Join(dir, "sys")}
	files := map[string]string{"cgroup.controllers": "cpu memory\n"}
	for j := range jobs {
		files[fmt.Sprintf("pitchpipe/%d.1/cgroup.procs", j)] = strconv.Itoa(100000+j) + "\n"
	}
	for n := range 60 { // what else a root and a slice hold
		files[fmt.Sprintf("cgroup.file%d", n)] = ""
		files[fmt.Sprintf("system.slice/s%d.service/cgroup.procs", n)] = ""
	}
	sandbox.Plant(tb, root.Cgroup(), files)
	for p := range processes {
		sandbox.Plant(tb, root.Pid(1000+p), map[string]string{
			"stat": fmt.Sprintf("%d (x) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0", 1000+p, p+1), "environ": "", "cgroup": "0::/\n", "cmdline": "x\x00",
		})
	}
	return root
}

// settle scans until nothing is new.
func settle(tb testing.TB, s *attrib.Scanner, jobs int) {
	tb.Helper()
	for range 25 {
		if got := len(s.Scan(tb.Context())); got != jobs {
			tb.Fatalf("%d jobs, want %d", got, jobs)
		}
	}
}

func TestAScanCostsTheSameHoweverManyProcessesItKnows(t *testing.T) {
	few, many := 10, 400
	allocations := func(processes int) float64 {
		s := attrib.NewScanner(crowd(t, 3, processes), attrib.TrustOwn)
		settle(t, s, 3)
		return testing.AllocsPerRun(18, func() { s.Scan(t.Context()) }) // no thorough one among them on average
	}
	if a, b := allocations(few), allocations(many); b > a+3 {
		t.Errorf("%v allocations with %d processes, %v with %d", a, few, b, many)
	}
}

func TestWhatComesAndGoesIsSeenByTheNextScan(t *testing.T) {
	t.Parallel()
	root := crowd(t, 2, 5)
	s := attrib.NewScanner(root, attrib.TrustAny)
	settle(t, s, 2)
	look := func(want ...string) {
		t.Helper()
		var got []string
		for _, f := range s.Scan(t.Context()) {
			got = append(got, f.Key.String())
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("jobs (-want +got):\n%s", diff)
		}
	}
	move := func(path string) {
		t.Helper()
		if err := os.Rename(path, filepath.Join(t.TempDir(), "gone")); err != nil {
			t.Fatal(err)
		}
	}
	// One goes and another comes, so that their number is the same.
	move(root.Cgroup("pitchpipe/0.1"))
	sandbox.Plant(t, root.Cgroup(), map[string]string{"pitchpipe/7.1/cgroup.procs": "9\n"})
	look("local/1.1", "local/7.1")
	// A tree that was not there.
	sandbox.Plant(t, root.Cgroup(), map[string]string{"nomad.slice/share.slice/" + alloc + ".t.scope/cgroup.procs": "9\n"})
	look("local/1.1", "local/7.1", "nomad/"+alloc+".t.1")
	move(root.Cgroup("nomad.slice"))
	look("local/1.1", "local/7.1")
	// Another process under a number that was in no job.
	move(root.Pid(1003))
	sandbox.Plant(t, root.Pid(1003), map[string]string{"stat": "1003 (y) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0", "environ": envOf("55", "1"), "cgroup": "0::/\n", "cmdline": "y\x00"})
	look("local/1.1", "local/55.1", "local/7.1")
	move(root.Pid(1003))
	look("local/1.1", "local/7.1")
	// A whole tree goes and comes back.
	move(root.Cgroup("pitchpipe"))
	look()
	sandbox.Plant(t, root.Cgroup(), map[string]string{"pitchpipe/1.2/cgroup.procs": "9\n"})
	look("local/1.2")
}

func TestAHierarchyThatIsMountedLaterIsFoundWithinSomeScans(t *testing.T) {
	t.Parallel()
	root := crowd(t, 0, 1)
	if err := os.Rename(root.Cgroup("cgroup.controllers"), root.Cgroup("unmounted")); err != nil {
		t.Fatal(err)
	}
	sandbox.Plant(t, root.Cgroup(), map[string]string{"memory/cgroup.procs": ""})
	s := attrib.NewScanner(root, attrib.TrustOwn)
	settle(t, s, 0)
	sandbox.Plant(t, root.Cgroup(), map[string]string{"unified/cgroup.controllers": "", "unified/pitchpipe/7.1/cgroup.procs": "9\n"})
	for range 20 {
		if len(s.Scan(t.Context())) == 1 {
			return
		}
	}
	t.Error("not found")
}

// Directories in which nothing leads to a job are not read while they hold as many.
func TestAHierarchyThatHadNothingOfOursIsLookedAtWhenItChanges(t *testing.T) {
	t.Parallel()
	empty := func() (hostfs.Root, *attrib.Scanner) {
		root := hostfs.Root{ProcFS: t.TempDir(), SysFS: t.TempDir()}
		sandbox.Plant(t, root.Cgroup(), map[string]string{"unified/cgroup.controllers": "", "unified/init/cgroup.procs": "1\n", "memory/cgroup.procs": "", "memory/init/cgroup.procs": "1\n"})
		s := attrib.NewScanner(root, attrib.TrustNone)
		settle(t, s, 0)
		return root, s
	}
	root, s := empty()
	sandbox.Plant(t, root.Cgroup(), map[string]string{"memory/pitchpipe/7.1/cgroup.procs": "9\n"})
	if got := s.Scan(t.Context()); len(got) != 1 {
		t.Errorf("%d jobs at the next look, want the one that came", len(got))
	}
	root, s = empty()
	if err := os.RemoveAll(root.Cgroup("memory/init")); err != nil {
		t.Fatal(err)
	}
	sandbox.Plant(t, root.Cgroup(), map[string]string{"memory/pitchpipe/7.1/cgroup.procs": "9\n"}) // as many as before
	for n := 1; len(s.Scan(t.Context())) == 0; n++ {
		if n == 20 {
			t.Fatal("a job is not found by twenty looks")
		}
	}
}

func TestAProcessThatBecomesAJobsAfterItsForkIsFound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		after int // scans that still count it as its parent's
		want  int // scans after which it is found at most
	}{{0, 1}, {1, 1}, {2, 1}, {3, 2}, {5, 3}, {8, 4}} {
		root := crowd(t, 0, 1)
		s := attrib.NewScanner(root, attrib.TrustAny)
		for range tc.after {
			if got := s.Scan(t.Context()); len(got) > 0 {
				t.Fatalf("%+v", got)
			}
		}
		sandbox.Plant(t, root.Pid(1000), map[string]string{"environ": envOf("5", "1")}) // exec
		found := 0
		for n := 1; n <= 12 && found == 0; n++ {
			if len(s.Scan(t.Context())) == 1 {
				found = n
			}
		}
		if found == 0 || found > tc.want {
			t.Errorf("exec after %d scans: found by scan %d after it, want %d at most", tc.after, found, tc.want)
		}
	}
}

func TestProcessesAreThoseOfTheTreeThatKnowsMost(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  []int
	}{
		{"no one", map[string]string{"a/cgroup.procs": "", "b/cgroup.procs": ""}, nil},
		{"a process in the second tree", map[string]string{"a/cgroup.procs": "", "b/cgroup.procs": "7\n"}, []int{7}},
		{"a process far below", map[string]string{"a/cgroup.procs": "", "b/cgroup.procs": "", "b/step_0/cgroup.procs": "", "b/step_0/user/cgroup.procs": "", "b/step_0/user/task_0/cgroup.procs": "7\n"}, []int{7}},
		{"a process in another process namespace", map[string]string{"a/cgroup.procs": "0\n", "b/cgroup.procs": "0\n"}, nil},
		{"nothing there", nil, nil},
	} {
		dir := t.TempDir()
		sandbox.Plant(t, dir, tc.files)
		f := attrib.Found{Dirs: map[string]string{hostfs.Unified: filepath.Join(dir, "a"), "memory": filepath.Join(dir, "b")}}
		if got := f.Processes(); !slices.Equal(got, tc.want) {
			t.Errorf("%s: processes %v, want %v", tc.name, got, tc.want)
		}
	}
}

// BenchmarkScan is one look for jobs on a node whose processes are known: ten jobs with a
// cgroup, and processes of no job.
func BenchmarkScan(b *testing.B) {
	for _, processes := range []int{100, 1000} {
		b.Run(fmt.Sprintf("processes=%d", processes), func(b *testing.B) {
			s := attrib.NewScanner(crowd(b, 10, processes), attrib.TrustOwn)
			settle(b, s, 10)
			b.ReportAllocs()
			for b.Loop() {
				s.Scan(b.Context())
			}
		})
	}
}

// BenchmarkScanOfThisMachine is the same of the machine itself, whatever it does.
func BenchmarkScanOfThisMachine(b *testing.B) {
	s := attrib.NewScanner(hostfs.Root{}, attrib.TrustOwn)
	for range 25 {
		s.Scan(b.Context())
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Scan(b.Context())
	}
}
