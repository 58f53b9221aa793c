package sampler_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// only shows one job of the machine, so that no other is touched.
type only struct {
	*attrib.Scanner
	id string
}

func (o only) Scan(ctx context.Context) []attrib.Found {
	var out []attrib.Found
	for _, f := range o.Scanner.Scan(ctx) {
		if f.Key.ID == o.id {
			out = append(out, f)
		}
	}
	return out
}

func TestARealSlurmJobInV1CgroupsIsCountedByPerfInItsLeaf(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making cgroups needs root")
	}
	var root hostfs.Root
	for _, s := range perf.New(root, perf.Kernel{}).Probe(t.Context()) {
		if s.Support != api.Supported {
			t.Skipf("%s is %s: %s", s.Name, s.Support, s.Reason)
		}
	}
	leaves, err := perf.NewCgroups(root)
	if err != nil {
		t.Skipf("no leaves here: %v", err)
	}
	t.Cleanup(func() {
		if err := leaves.Close(); err != nil {
			t.Error(err)
		}
	})
	job := strconv.Itoa(3_800_000_000 + os.Getpid())
	dir := ""
	for _, h := range root.Hierarchies() {
		if !h.V2 && h.Has("cpuacct") {
			dir = h.Dir
		}
	}
	if dir == "" {
		t.Skip("no v1 hierarchy")
	}
	for _, part := range []string{"slurm_pptest-" + job, "uid_1234", "job_" + job, "step_batch"} {
		dir = filepath.Join(dir, part)
		made := dir
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skipf("cannot make a cgroup: %v", err)
		}
		t.Cleanup(func() { _ = os.Remove(made) })
	}
	// It burns on request, in a child that it starts then, and waits to be let go.
	c := exec.CommandContext(t.Context(), "sh", "-c", "read line; sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo done; read line")
	c.Env = append(os.Environ(), "SLURM_JOB_ID="+job, "SLURM_RESTART_COUNT=1")
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
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(c.Process.Pid)), 0o600); err != nil {
		t.Fatal(err)
	}

	store := window.New(window.Config{})
	s := sampler.New(sampler.Config{Interval: 100 * time.Millisecond, Discover: 20 * time.Millisecond, Cores: 2, PerfCgroups: leaves},
		only{attrib.NewScanner(root, attrib.TrustNone), job}, []collector.Collector{cgroup.New(root), perf.New(root, perf.Kernel{})}, newWorld(),
		energy.NewModeller(energy.Model{Idle: 40, Max: 120}), store)
	serve(t, s.Run)
	until := func(what string, ok func(api.Window) bool) api.Window {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
			w, found := store.Window("slurm/"+job, 2, 0, 0, func(api.Job) bool { return true })
			if found && ok(w) {
				return w
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v of schema %s", what, w.Job, w.Schema)
			}
		}
	}
	until("no perf", func(w api.Window) bool { return w.Schema == api.SchemaSoftware })
	if _, err := fmt.Fprintln(stdin); err != nil {
		t.Fatal(err)
	}
	if _, err := stdout.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	last := func(w api.Window) map[string]float64 { return w.Samples[len(w.Samples)-1].Values }
	seen := last(until("nothing counted", func(w api.Window) bool { return last(w)[api.ColTaskClock] > 0.01 && last(w)[api.ColCPUSeconds] > 0.01 }))
	if _, ok := seen[api.ColCPUPressure]; !ok {
		t.Errorf("no pressure in %v", seen)
	}
	if _, err := fmt.Fprintln(stdin); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	w := until("it does not end", func(w api.Window) bool { return w.Job.Ended })
	cpu := (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	// What the shell did before it was moved is not in the clock.
	if clock := last(w)[api.ColTaskClock]; clock < 0.7*cpu-0.05 || clock > 1.25*cpu+0.05 {
		t.Errorf("task clock %v s, CPU time %v s", clock, cpu)
	}
	until("the leaf is still there", func(api.Window) bool {
		_, err := os.Stat(filepath.Join(root.Cgroup(hostfs.Unified), perf.CgroupsTop, "slurm-"+job))
		return err != nil
	})
}
