package sampler_test

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
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/collector/proc"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// The test binary is a job: with this variable it touches pages and ends.
const worker = "PITCHPIPE_SAMPLER_TEST_WORKER"

// work reads "forks threads pages rounds locked": starts its threads, says that it has,
// waits for a line, then touches the pages so many times in each thread of itself and, one
// after the other, of each fork; locked = 0 leaves it to the Go runtime on which thread.
func work(spec string) error {
	var forks, threads, pages, rounds, locked int
	if _, err := fmt.Sscan(spec, &forks, &threads, &pages, &rounds, &locked); err != nil {
		return err
	}
	var ready, done sync.WaitGroup
	begin, failed := make(chan struct{}), make(chan error, threads)
	ready.Add(threads)
	for range threads {
		done.Go(func() {
			if locked > 0 {
				runtime.LockOSThread()
			}
			ready.Done()
			<-begin
			failed <- touch(pages, rounds)
		})
	}
	ready.Wait()
	if _, err := os.Stdout.WriteString("r"); err != nil {
		return err
	}
	var line [1]byte
	if _, err := os.Stdin.Read(line[:]); err != nil {
		return err
	}
	close(begin)
	for range forks {
		c := exec.CommandContext(context.Background(), os.Args[0])
		c.Env = append(os.Environ(), worker+"="+fmt.Sprintf("0 %d %d %d %d", threads, pages, rounds, locked))
		c.Stdin = strings.NewReader("\n")
		if err := c.Run(); err != nil {
			return err
		}
	}
	done.Wait()
	var errs []error
	for range threads {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}

func touch(pages, rounds int) error {
	size := pages * os.Getpagesize()
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return err
	}
	if err := unix.Madvise(mem, unix.MADV_NOHUGEPAGE); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	for range rounds {
		for i := 0; i < size; i += os.Getpagesize() {
			mem[i] = 1
		}
		if err := unix.Madvise(mem, unix.MADV_DONTNEED); err != nil { // to be touched again
			return err
		}
	}
	return nil
}

// localLeaf makes a local job's cgroups, or skips and says why.
func localLeaf(t *testing.T, name string) (dirs []string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making cgroups needs root")
	}
	for _, s := range perf.New(hostfs.Root{}, perf.Kernel{}).Probe(t.Context()) {
		if s.Support != api.Supported {
			t.Skipf("%s is %s: %s", s.Name, s.Support, s.Reason)
		}
	}
	for _, h := range (hostfs.Root{}).Hierarchies() {
		if !h.V2 && !h.Has("memory") {
			continue
		}
		dir := filepath.Join(h.Dir, "pitchpipe", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Skipf("cannot make a cgroup: %v", err)
		}
		t.Cleanup(func() {
			_ = os.Remove(dir)
			_ = os.Remove(filepath.Dir(dir)) // stays where others' jobs are in it
		})
		dirs = append(dirs, dir)
	}
	return dirs
}

// What the sampler writes down of a real job is what the kernel tells the job's parent,
// whatever the job's processes are like, and never falls from one sample to the next.
func TestARealJobIsCountedToHalfAPercentWhateverItsProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	for i, tc := range []struct {
		name                          string
		forks, threads, pages, rounds int
		runtime                       bool
	}{
		{name: "threads that are there before it is seen", threads: 8, pages: 500, rounds: 40},
		{name: "children, forked after it is seen", forks: 8, threads: 1, pages: 2000, rounds: 5},
		{name: "processes that live between two samples", forks: 20, threads: 1, pages: 500, rounds: 4},
		{name: "goroutines that the Go runtime moves between threads", threads: 16, pages: 250, rounds: 40, runtime: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := fmt.Sprintf("count%d-%d", os.Getpid(), i)
			dirs := localLeaf(t, id+".1")
			locked := 1
			if tc.runtime {
				locked = 0
			}
			c := exec.CommandContext(t.Context(), os.Args[0])
			c.Env = append(os.Environ(), worker+"="+fmt.Sprintf("%d %d %d %d %d", tc.forks, tc.threads, tc.pages, tc.rounds, locked))
			c.Stderr = os.Stderr
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
			if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil { // its threads are there
				t.Fatal(err)
			}
			for _, dir := range dirs {
				if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var root hostfs.Root
			store := window.New(window.Config{Samples: 20_000})
			s := sampler.New(sampler.Config{Interval: 20 * time.Millisecond, Discover: 10 * time.Millisecond, Cores: 2},
				only{attrib.NewScanner(root, attrib.TrustNone), id}, []collector.Collector{cgroup.New(root), perf.New(root, perf.Kernel{}), proc.New(root)}, newWorld(),
				energy.NewModeller(energy.Model{Idle: 40, Max: 120}), store)
			serve(t, s.Run)
			see := func(what string, ok func(api.Window) bool) api.Window {
				t.Helper()
				for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
					w, found := store.Window(id, 1, 0, 0, func(api.Job) bool { return true })
					if found && ok(w) {
						return w
					}
					if time.Now().After(deadline) {
						t.Fatalf("%s: %+v of schema %s", what, w.Job, w.Schema)
					}
				}
			}
			see("no perf", func(w api.Window) bool { return w.Schema == api.SchemaSoftware && len(w.Samples) > 1 })
			before := faultsOf(t, c.Process.Pid)
			if _, err := io.WriteString(stdin, "\n"); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err != nil {
				t.Fatal(err)
			}
			all, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
			if !ok {
				t.Fatal("the kernel does not tell what the job used")
			}
			truth := float64(all.Minflt) - before
			for _, dir := range dirs {
				if err := os.Remove(dir); err != nil {
					t.Fatal(err)
				}
			}
			w := see("it does not end", func(w api.Window) bool { return w.Job.Ended })
			last := map[string]float64{}
			for _, sample := range w.Samples {
				for _, column := range []string{api.ColMinorFaults, api.ColMajorFaults, api.ColTaskClock, api.ColContextSwitch, api.ColCPUSeconds, api.ColReadChars, api.ColVoluntary} {
					if v, there := sample.Values[column]; there {
						if v < last[column] {
							t.Errorf("%s went from %v to %v", column, last[column], v)
						}
						last[column] = v
					}
				}
			}
			got := last[api.ColMinorFaults]
			t.Logf("%v minor faults, the kernel tells %v: %+.3f %%, in %d samples", got, truth, 100*(got/truth-1), len(w.Samples))
			if math.Abs(got-truth) > 0.005*truth {
				t.Errorf("%v minor faults, the kernel tells %v", got, truth)
			}
		})
	}
}

// faultsOf is what a process has counted so far.
func faultsOf(t *testing.T, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f, _ := hostfs.ParseProcStat(data)
	return float64(f[10])
}
