package perf_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/collector/proc"
	"pitchpipe/exporter/hostfs"
)

// The test binary is its own worker: with this variable it touches pages and ends.
const worker = "PITCHPIPE_PERF_TEST_WORKER"

// With this one it touches them on that CPU.
const workerCPU = "PITCHPIPE_PERF_TEST_CPU"

func TestMain(m *testing.M) {
	if spec := os.Getenv(worker); spec != "" {
		work(spec)
		return
	}
	os.Exit(m.Run())
}

// work reads "forks threads pages": waits for a line, then touches pages in each
// thread of itself and of each fork.
func work(spec string) {
	var forks, threads, pages int
	if _, err := fmt.Sscan(spec, &forks, &threads, &pages); err != nil {
		panic(err)
	}
	if _, err := os.Stdout.WriteString("r"); err != nil { // it has started
		panic(err)
	}
	var line [1]byte
	if _, err := os.Stdin.Read(line[:]); err != nil {
		panic(err)
	}
	for range forks {
		c := exec.CommandContext(context.Background(), os.Args[0])
		c.Env = append(os.Environ(), worker+"="+fmt.Sprintf("0 %d %d", threads, pages))
		c.Stdin = strings.NewReader("\n")
		if err := c.Run(); err != nil {
			panic(err)
		}
	}
	var wg sync.WaitGroup
	for range threads {
		wg.Go(func() {
			if text := os.Getenv(workerCPU); text != "" {
				runtime.LockOSThread()
				cpu, err := strconv.Atoi(text)
				if err != nil {
					panic(err)
				}
				var set unix.CPUSet
				set.Set(cpu)
				if err := unix.SchedSetaffinity(0, &set); err != nil {
					panic(err)
				}
			}
			size := pages * os.Getpagesize()
			mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
			if err != nil {
				panic(err)
			}
			if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
				panic(err)
			}
			for i := 0; i < size; i += os.Getpagesize() {
				mem[i] = 1
			}
		})
	}
	wg.Wait()
}

// leaf makes a cgroup in perf's hierarchy, or skips and says why.
func leaf(t *testing.T) string {
	t.Helper()
	var root hostfs.Root
	for _, s := range perf.New(root).Probe(t.Context()) {
		if s.Support != api.Supported {
			t.Skipf("%s is %s: %s", s.Name, s.Support, s.Reason)
		}
	}
	for _, h := range root.Hierarchies() {
		if !h.V2 {
			continue
		}
		dir := filepath.Join(h.Dir, fmt.Sprintf("pptest-perf-%d-%d", os.Getpid(), time.Now().UnixNano()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("cannot make a cgroup: %v", err)
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		return dir
	}
	t.Skip("no v2 hierarchy")
	return ""
}

// used is what the kernel tells the parent of a worker, from when it was in its
// cgroup on.
type used struct {
	faults float64
	cpu    time.Duration
}

// run counts a worker that begins to work when it is in a cgroup of its own.
func run(t *testing.T, forks, threads, pages int) (collector.Values, used) {
	t.Helper()
	dir := leaf(t)
	r, err := perf.New(hostfs.Root{}).Open(t.Context(), collector.Target{Dirs: map[string]string{hostfs.Unified: dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %d", worker, forks, threads, pages))
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	before := started(t, c.Process.Pid)
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err) // and yet the events still answer
	}
	got := collector.Values{}
	if err := r.Read(t.Context(), collector.Moment{}, got); err != nil {
		t.Fatal(err)
	}
	all, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("the kernel does not tell what the worker used")
	}
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	return got, used{faults: float64(all.Minflt) - before.faults, cpu: cpu - before.cpu}
}

// started is what a worker used so far.
func started(t *testing.T, pid int) used {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	s, err := proc.ParseStat(data)
	if err != nil {
		t.Fatal(err)
	}
	return used{faults: float64(s.Own.MinorFaults), cpu: time.Duration(s.Own.UserTicks+s.Own.SystemTicks) * 10 * time.Millisecond}
}

func TestCountsThreadsAndForksOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, tc := range []struct {
		name                  string
		forks, threads, pages int
	}{
		{name: "one thread", threads: 1, pages: 40000},
		{name: "eight threads", threads: 8, pages: 5000},
		{name: "three children with two threads that come and go", forks: 3, threads: 2, pages: 5000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, truth := run(t, tc.forks, tc.threads, tc.pages)
			faults := got[api.ColMinorFaults]
			// The kernel books faults of an exec's arguments without an event: a few each.
			if allowed := 0.005*truth.faults + 100*float64(tc.forks); math.Abs(faults-truth.faults) > allowed {
				t.Errorf("%v minor faults, the kernel tells %v", faults, truth.faults)
			}
			if touched := float64((1 + tc.forks) * tc.threads * (tc.pages - 1)); faults < 0.995*touched {
				t.Errorf("%v minor faults, %v pages were touched", faults, touched)
			}
			if clock := got[api.ColTaskClock]; math.Abs(clock-truth.cpu.Seconds()) > 0.25*truth.cpu.Seconds()+0.05 {
				t.Errorf("task clock %v s, CPU time %v", clock, truth.cpu)
			}
			if got[api.ColContextSwitch] <= 0 {
				t.Errorf("context switches %v", got[api.ColContextSwitch])
			}
			if e, r := got[api.ColPerfEnabled], got[api.ColPerfRunning]; e <= 0 || math.Abs(e-r) > 1e-3*e {
				t.Errorf("enabled %v s, running %v s: software events are never multiplexed", e, r)
			}
		})
	}
}

func TestCountersGoOnWhenTheCPUsOrTheCgroupOfAJobChange(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	cpus, err := hostfs.Root{}.OnlineCPUs()
	if err != nil || len(cpus) < 2 {
		t.Skipf("needs two CPUs: %v, %v", cpus, err)
	}
	one, two := leaf(t), leaf(t)
	dirs := map[string]string{hostfs.Unified: one}
	r, err := perf.New(hostfs.Root{}).Open(t.Context(), collector.Target{Dirs: dirs, CPUs: cpus[:1]})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	last := collector.Values{}
	const pages = 3000
	// Each worker touches pages on a CPU and in a cgroup that the job was given just before.
	for i, step := range []struct {
		cpus []int
		dir  string
	}{{cpus[:1], one}, {cpus[1:2], one}, {cpus[:2], one}, {cpus[:1], one}, {cpus[1:2], one}, {cpus[:2], two}, {cpus[:1], two}, {cpus[:1], one}} {
		allowed, dir := step.cpus, step.dir
		target := collector.Target{Leaf: dir, CPUs: allowed} // a leaf, or
		if i%2 == 0 {
			target = collector.Target{Dirs: map[string]string{hostfs.Unified: dir}, CPUs: allowed}
		}
		if err := r.(collector.Follower).Follow(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), os.Args[0])
		c.Env = append(os.Environ(), fmt.Sprintf("%s=0 1 %d", worker, pages), workerCPU+"="+strconv.Itoa(allowed[len(allowed)-1]))
		stdin, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := stdin.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
		now := collector.Values{}
		if err := r.Read(t.Context(), collector.Moment{}, now); err != nil {
			t.Fatal(err)
		}
		for column, was := range last {
			if now[column] < was {
				t.Errorf("step %d: %s went from %v to %v", i, column, was, now[column])
			}
		}
		if got := now[api.ColMinorFaults] - last[api.ColMinorFaults]; got < pages-1 {
			t.Errorf("step %d on CPUs %v: %v faults, at least %v pages were touched", i, allowed, got, pages)
		}
		last = now
	}
}

func TestOnlyAJobWithACgroupInPerfsHierarchyIsCounted(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]collector.Target{
		"no cgroup":              {},
		"in other hierarchies":   {Dirs: map[string]string{"memory": "/nowhere"}},
		"a cgroup that is gone":  {Dirs: map[string]string{hostfs.Unified: filepath.Join(t.TempDir(), "gone")}},
		"a directory that isn't": {Dirs: map[string]string{hostfs.Unified: t.TempDir()}},
	} {
		r, err := perf.New(hostfs.Root{}).Open(t.Context(), target)
		if err == nil {
			t.Errorf("%s: opened", name)
			_ = r.Close()
		}
	}
}

func TestProbeSaysThatATreeWithoutCgroupsHasNone(t *testing.T) {
	t.Parallel()
	sources := perf.New(hostfs.Root{CgroupFS: t.TempDir()}).Probe(t.Context())
	if len(sources) != 5 {
		t.Errorf("%d sources, want 5", len(sources))
	}
	for _, s := range sources {
		if s.Support != api.Unsupported || s.Reason == "" {
			t.Errorf("%+v, want unsupported with a reason", s)
		}
	}
}
