package sampler

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/collector/proc"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/window"
)

// sleepers are jobs in their own cgroups, of processes that do nothing.
func sleepers(tb testing.TB, jobs, processes int) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("making cgroups needs root")
	}
	made := false
	for _, h := range (hostfs.Root{}).Hierarchies() {
		made = made || h.V2
	}
	if !made {
		tb.Skip("no v2 hierarchy")
	}
	for j := range jobs {
		var dirs []string
		for _, h := range (hostfs.Root{}).Hierarchies() {
			if !h.V2 && !h.Has("memory") {
				continue
			}
			dir := filepath.Join(h.Dir, "pitchpipe", fmt.Sprintf("cost%d-%d.1", os.Getpid(), j))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				tb.Skipf("cannot make a cgroup: %v", err)
			}
			dirs = append(dirs, dir)
		}
		tb.Cleanup(func() {
			for _, dir := range dirs {
				_ = os.Remove(dir)
				_ = os.Remove(filepath.Dir(dir)) // stays where others' jobs are in it
			}
		})
		for range processes {
			c := exec.CommandContext(tb.Context(), "sleep", "1000")
			if err := c.Start(); err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() {
				_ = c.Process.Kill() // it may have ended with the context
				_ = c.Wait()
			})
			for _, dir := range dirs {
				if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0o600); err != nil {
					tb.Fatal(err)
				}
			}
		}
	}
}

// mine shows the jobs of this test alone.
type mine struct{ *attrib.Scanner }

func (m mine) Scan(ctx context.Context) []attrib.Found {
	return slices.DeleteFunc(m.Scanner.Scan(ctx), func(f attrib.Found) bool {
		return !strings.HasPrefix(f.Key.ID, fmt.Sprintf("cost%d-", os.Getpid()))
	})
}

func TestDescriptorsGrowWithJobsTimesCPUsAndNotWithProcesses(t *testing.T) {
	descriptors := func(jobs, processes int) (held int) {
		t.Run(fmt.Sprintf("%d jobs of %d processes", jobs, processes), func(t *testing.T) {
			sleepers(t, jobs, processes)
			count := func() int {
				fds, err := os.ReadDir("/proc/self/fd")
				if err != nil {
					t.Fatal(err)
				}
				return len(fds)
			}
			var root hostfs.Root
			counted := perf.New(root, perf.Kernel{})
			for _, s := range counted.Probe(t.Context()) {
				if s.Support != api.Supported {
					t.Skipf("%s is %s: %s", s.Name, s.Support, s.Reason)
				}
			}
			s := New(Config{Cores: 2}, mine{attrib.NewScanner(root, attrib.TrustNone)}, []collector.Collector{cgroup.New(root), counted, proc.New(root)},
				node.New(root), energy.NewModeller(energy.DefaultModel(2)), window.New(window.Config{}))
			before := count()
			s.discover(t.Context())
			s.tick(t.Context())
			if len(s.jobs) != jobs {
				t.Fatalf("%d jobs, want %d", len(s.jobs), jobs)
			}
			held = count() - before
			for _, j := range s.jobs {
				j.close()
			}
			if left := count() - before; left != 0 {
				t.Errorf("%d descriptors are left", left)
			}
		})
		return held
	}
	cpus, err := hostfs.Root{}.OnlineCPUs()
	if err != nil {
		t.Fatal(err)
	}
	few, many, more := descriptors(2, 1), descriptors(2, 30), descriptors(4, 1)
	if few == 0 {
		t.Skip("no events here")
	}
	if many != few {
		t.Errorf("%d descriptors with 2 processes, %d with 60", few, many)
	}
	const events = 5 // of the preset software
	if more != 2*few || few != 2*events*len(cpus) {
		t.Errorf("%d descriptors for 2 jobs and %d for 4; want %d events on %d CPUs for each", few, more, events, len(cpus))
	}
}
