package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// In cgroup mode the process id is the descriptor of the cgroup's directory.
const cgroupMode = unix.PERF_FLAG_PID_CGROUP | unix.PERF_FLAG_FD_CLOEXEC

type event struct {
	name   string
	config uint64
	column string
	unit   float64 // counts per unit of the column
}

// The first event leads the group.
func events() []event {
	return []event{
		{"task-clock", unix.PERF_COUNT_SW_TASK_CLOCK, api.ColTaskClock, 1e9},
		{"context-switches", unix.PERF_COUNT_SW_CONTEXT_SWITCHES, api.ColContextSwitch, 1},
		{"cpu-migrations", unix.PERF_COUNT_SW_CPU_MIGRATIONS, api.ColMigrations, 1},
		{"minor-faults", unix.PERF_COUNT_SW_PAGE_FAULTS_MIN, api.ColMinorFaults, 1},
		{"major-faults", unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ, api.ColMajorFaults, 1},
	}
}

// Probe opens each event once on the root of perf's hierarchy and closes it.
func (c *Collector) Probe(context.Context) []api.Source {
	root, err := c.hierarchy()
	cpu := 0
	if err == nil {
		var cpus []int
		if cpus, err = c.root.OnlineCPUs(); err == nil {
			cpu = cpus[0]
		}
	}
	var out []api.Source
	for _, e := range events() {
		answer := err
		if answer == nil {
			answer = try(root.Dir, cpu, e.config)
		}
		out = append(out, collector.Source("perf/"+e.name, "cgroup mode on "+root.Name, answer))
	}
	return out
}

// hierarchy is where perf looks for cgroups: a v1 tree of its own where one is
// mounted, else v2.
func (c *Collector) hierarchy() (hostfs.Hierarchy, error) {
	var found hostfs.Hierarchy
	for _, h := range c.root.Hierarchies() {
		if h.Has("perf_event") && !h.V2 {
			return h, nil
		}
		if h.V2 {
			found = h
		}
	}
	if found.Dir == "" {
		return found, fmt.Errorf("%w: no cgroup hierarchy that perf uses", collector.ErrUnsupported)
	}
	return found, nil
}

// try asks the kernel whether it would open an event, and why not.
func try(dir string, cpu int, config uint64) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only used as a name
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: config,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits:   unix.PerfBitDisabled | unix.PerfBitExcludeHv,
	}
	fd, err := unix.PerfEventOpen(&attr, int(f.Fd()), cpu, -1, cgroupMode)
	switch {
	case err == nil:
		return unix.Close(fd)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("perf_event_open: %w: needs CAP_PERFMON, or kernel.perf_event_paranoid below 1", err)
	case errors.Is(err, unix.EBADF), errors.Is(err, unix.EINVAL):
		return fmt.Errorf("perf_event_open: %w: not a cgroup in perf's hierarchy", err)
	default:
		return fmt.Errorf("perf_event_open: %w", err)
	}
}
