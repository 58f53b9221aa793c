package perf_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
)

// The test binary is its own worker: with this variable it touches pages and ends.
const worker = "PITCHPIPE_PERF_TEST_WORKER"

// With this one it touches them on that CPU.
const workerCPU = "PITCHPIPE_PERF_TEST_CPU"

// With this one it opens events until there is no descriptor for them.
const hoarder = "PITCHPIPE_PERF_TEST_HOARDER"

func TestMain(m *testing.M) {
	if os.Getenv(hoarder) != "" {
		if err := hoard(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if spec := os.Getenv(worker); spec != "" {
		work(spec)
		return
	}
	os.Exit(m.Run())
}

// hoard opens events for as long as they are given, and then files, as many as the process
// may still have.
func hoard() error {
	for n := 0; ; n++ {
		_, err := perf.Kernel{}.Open([]perf.Attr{{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CONTEXT_SWITCHES}}, perf.Where{})
		if errors.Is(err, unix.EMFILE) {
			fmt.Println("events", n)
			break
		}
		if err != nil {
			return err
		}
	}
	for n := 0; ; n++ {
		if _, err := os.Open("/dev/null"); err != nil {
			fmt.Println("files", n)
			return nil
		}
	}
}

// work reads "forks threads pages rounds locked": starts its threads, says that it has,
// waits for a line, then touches the pages so many times in each thread of itself and of
// each fork; locked = 0 leaves it to the Go runtime on which thread.
func work(spec string) {
	var forks, threads, pages, rounds, locked int
	if _, err := fmt.Sscan(spec, &forks, &threads, &pages, &rounds, &locked); err != nil {
		panic(err)
	}
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	ready.Add(threads)
	for range threads {
		done.Go(func() {
			if locked > 0 {
				runtime.LockOSThread()
			}
			ready.Done()
			<-begin
			touch(pages, rounds)
		})
	}
	ready.Wait()
	if _, err := os.Stdout.WriteString("r"); err != nil {
		panic(err)
	}
	var line [1]byte
	if _, err := os.Stdin.Read(line[:]); err != nil {
		panic(err)
	}
	close(begin)
	for range forks {
		c := exec.CommandContext(context.Background(), os.Args[0])
		c.Env = append(os.Environ(), worker+"="+fmt.Sprintf("0 %d %d %d %d", threads, pages, rounds, locked))
		c.Stdin = strings.NewReader("\n")
		if err := c.Run(); err != nil {
			panic(err)
		}
	}
	done.Wait()
}

func touch(pages, rounds int) {
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
	for range rounds {
		for i := 0; i < size; i += os.Getpagesize() {
			mem[i] = 1
		}
		if err := unix.Madvise(mem, unix.MADV_DONTNEED); err != nil { // to be touched again
			panic(err)
		}
	}
}

// leaf makes a cgroup in perf's hierarchy, or skips and says why.
func leaf(t testing.TB) string {
	t.Helper()
	var root hostfs.Root
	for _, s := range perf.New(root, perf.Kernel{}).Probe(t.Context()) {
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

// started is what a worker used so far.
func started(t *testing.T, pid int) used {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f, _ := hostfs.ParseProcStat(data)
	return used{faults: float64(f[10]), cpu: time.Duration(f[14]+f[15]) * 10 * time.Millisecond}
}

// process is a worker that waits for its line.
type process struct {
	*exec.Cmd
	stdin io.Writer
}

// begin starts a worker, which has all its threads when this returns.
func begin(t *testing.T, spec string, env ...string) process {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(append(os.Environ(), worker+"="+spec), env...)
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
	return process{c, stdin}
}

func (p process) join(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(p.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// finish lets it work, calls often while it does, and returns what the kernel counted.
func (p process) finish(t *testing.T, often func()) used {
	t.Helper()
	if _, err := p.stdin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Wait() }()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			often()
			continue
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		}
		break
	}
	all, ok := p.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		t.Fatal("the kernel does not tell what the worker used")
	}
	return used{faults: float64(all.Minflt), cpu: p.ProcessState.UserTime() + p.ProcessState.SystemTime()}
}

// rising reads and fails where a counter fell.
type rising struct {
	reader collector.Reader
	last   collector.Values
	times  int
}

func (r *rising) read(t *testing.T) {
	t.Helper()
	now := values(t, r.reader)
	for column, was := range r.last {
		if v, ok := now[column]; !ok || !(v >= was) {
			t.Errorf("%s went from %v to %v", column, was, v)
		}
	}
	r.last = now
	r.times++
}

func TestCountsThreadsAndForksOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for _, tc := range []struct {
		name                           string
		forks, threads, pages, rounds  int
		runtime, attachLate, unwatched bool
	}{
		{name: "one thread", threads: 1, pages: 2000, rounds: 20},
		{name: "eight threads that exist before their job is seen", threads: 8, pages: 500, rounds: 12, attachLate: true},
		{name: "four children, forked after their job is seen", forks: 4, threads: 1, pages: 2000, rounds: 3},
		{name: "ten short processes between two readings", forks: 10, threads: 1, pages: 1000, rounds: 2, unwatched: true},
		{name: "children with threads that come and go", forks: 3, threads: 4, pages: 1000, rounds: 6},
		{name: "goroutines that the Go runtime moves between threads", threads: 16, pages: 250, rounds: 12, runtime: true, attachLate: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := leaf(t)
			locked := 1
			if tc.runtime {
				locked = 0
			}
			c := perf.New(hostfs.Root{}, perf.Kernel{}, chosen(t, "page-faults")...)
			p := begin(t, fmt.Sprintf("%d %d %d %d %d", tc.forks, tc.threads, tc.pages, tc.rounds, locked))
			target := collector.Target{Dirs: unified(dir)}
			var r rising
			attached := time.Now()
			if tc.attachLate {
				p.join(t, dir)
				r.reader = opened(t, c, target)
			} else {
				r.reader = opened(t, c, target)
				p.join(t, dir)
			}
			before := started(t, p.Process.Pid)
			truth := p.finish(t, func() {
				if !tc.unwatched {
					r.read(t)
				}
			})
			truth.faults, truth.cpu = truth.faults-before.faults, truth.cpu-before.cpu
			r.read(t)
			if err := os.Remove(dir); err != nil {
				t.Fatal(err) // and yet the events still answer
			}
			r.read(t)
			got := r.last
			faults := got[api.ColMinorFaults]
			t.Logf("%v minor faults, the kernel tells %v: %+.3f %%, in %d readings", faults, truth.faults, 100*(faults/truth.faults-1), r.times)
			if math.Abs(faults-truth.faults) > 0.005*truth.faults {
				t.Errorf("%v minor faults, the kernel tells %v", faults, truth.faults)
			}
			touched := float64((1 + tc.forks) * tc.threads * tc.pages * tc.rounds)
			if faults < 0.995*touched {
				t.Errorf("%v minor faults, %v pages were touched", faults, touched)
			}
			// A fault counts before its kind is known, and a process may be killed in between.
			if all := got[api.PerfEvent("page-faults")]; math.Abs(all-faults-got[api.ColMajorFaults]) > 1e-4*all {
				t.Errorf("%v page faults, of which %v minor and %v major", all, faults, got[api.ColMajorFaults])
			}
			// The clock runs on while a hypervisor has the CPU, which CPU time leaves out.
			most := time.Since(attached).Seconds() * float64(runtime.NumCPU())
			if clock := got[api.ColTaskClock]; clock < 0.75*truth.cpu.Seconds()-0.05 || clock > most {
				t.Errorf("task clock %v s, CPU time %v, and there were %v s", clock, truth.cpu, most)
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
	r, err := perf.New(hostfs.Root{}, perf.Kernel{}).Open(t.Context(), collector.Target{Dirs: dirs, CPUs: cpus[:1]})
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
		target := collector.Target{PerfDir: dir, CPUs: allowed} // a perf cgroup, or
		if i%2 == 0 {
			target = collector.Target{Dirs: map[string]string{hostfs.Unified: dir}, CPUs: allowed}
		}
		if err := r.(collector.Follower).Follow(t.Context(), target); err != nil {
			t.Fatal(err)
		}
		p := begin(t, fmt.Sprintf("0 1 %d 1 0", pages), workerCPU+"="+strconv.Itoa(allowed[len(allowed)-1]))
		p.join(t, dir)
		p.finish(t, func() {})
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
		r, err := perf.New(hostfs.Root{}, perf.Kernel{}).Open(t.Context(), target)
		if err == nil {
			t.Errorf("%s: opened", name)
			_ = r.Close()
		}
	}
}

func TestEventsLeaveDescriptorsForConnections(t *testing.T) {
	t.Parallel()
	g, err := perf.Kernel{}.Open([]perf.Attr{{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CONTEXT_SWITCHES}}, perf.Where{})
	if err != nil {
		t.Skipf("no perf events here: %v", err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[int][2]int{400: {180, 190}, 100: {30, 45}} {
		c := exec.CommandContext(t.Context(), "sh", "-c", fmt.Sprintf("ulimit -n %d && exec %q", limit, os.Args[0]))
		c.Env = append(os.Environ(), hoarder+"=1")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var events, files int
		if _, err := fmt.Sscanf(string(out), "events %d\nfiles %d\n", &events, &files); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		// A few are the process's own; the runtime takes some only when files are opened.
		if events < want[0] || files < want[1] {
			t.Errorf("of %d descriptors %d are events and %d are left; want at least %v", limit, events, files, want)
		}
	}
}

func TestAJobInAPerfCgroupIsCountedWhereverPerfLooks(t *testing.T) {
	t.Parallel()
	for name, tree := range map[string]string{"a tree of perf's own": "perf_event", "v2 beside v1": "unified"} {
		synctest.Test(t, func(t *testing.T) {
			k := newFake(t, 1)
			if err := os.Remove(filepath.Join(k.tree, "cgroup.controllers")); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"cgroup/unified/cgroup.controllers", "cgroup/freezer/cgroup.procs", "cgroup/" + tree + "/cgroup.procs"} {
				k.plant(t, file, "")
			}
			dir := k.cgroup(t, tree+"/pitchpipe-perf/slurm-42")
			target := collector.Target{Dirs: map[string]string{"freezer": k.cgroup(t, "freezer/slurm/uid_1/job_42")}, PerfDir: dir}
			c := perf.New(k.root, k)
			r := opened(t, c, target)
			k.run(0, dir, busy())
			time.Sleep(time.Second)
			if got := values(t, r)[api.ColMinorFaults]; math.Abs(got-5000) > 5 {
				t.Errorf("%s: %v faults, want 5000", name, got)
			}
			target.PerfDir = k.cgroup(t, "freezer/pitchpipe-perf/slurm-42")
			if _, err := c.Open(t.Context(), target); !errors.Is(err, collector.ErrUnsupported) {
				t.Errorf("%s: %v for a leaf in another tree, want %v", name, err, collector.ErrUnsupported)
			}
		})
	}
}

func TestProbeSaysThatATreeWithoutCgroupsHasNone(t *testing.T) {
	t.Parallel()
	sources := perf.New(hostfs.Root{CgroupFS: t.TempDir()}, perf.Kernel{}).Probe(t.Context())
	if len(sources) != 5 {
		t.Errorf("%d sources, want 5", len(sources))
	}
	for _, s := range sources {
		if s.Support != api.Unsupported || s.Reason == "" {
			t.Errorf("%+v, want unsupported with a reason", s)
		}
	}
}

func targetOf(dir string) collector.Target { return collector.Target{Dirs: unified(dir)} }

// BenchmarkReadingTenJobs reads ten jobs on every CPU once.
func BenchmarkReadingTenJobs(b *testing.B) {
	c := perf.New(hostfs.Root{}, perf.Kernel{})
	var readers []collector.Reader
	began := time.Now()
	for range 10 {
		readers = append(readers, opened(b, c, targetOf(leaf(b))))
	}
	b.ReportMetric(float64(time.Since(began).Microseconds())/10, "µs/open")
	for b.Loop() {
		for _, r := range readers {
			_ = values(b, r)
		}
	}
}
