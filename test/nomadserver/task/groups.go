package task

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// groups are the cgroups of one task, version 1. A nil value is none.
type groups struct{ paths []string }

// makeGroups makes the groups that raw_exec has under version 1 where this process may;
// nil where it may not.
func makeGroups(s Spec) (*groups, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // no groups
	}
	g := &groups{}
	for _, controller := range []string{"freezer", "cpu", "memory"} {
		if _, err := os.Stat(filepath.Join(cgroupRoot, controller, "tasks")); err != nil {
			return nil, nil //nolint:nilnil // another version
		}
		g.paths = append(g.paths, filepath.Join(cgroupRoot, controller, "nomad", s.AllocID+"."+s.Task.Name))
	}
	for _, path := range g.paths {
		if err := os.MkdirAll(path, 0o755); err != nil {
			g.remove()
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
				return nil, nil //nolint:nilnil // a container
			}
			return nil, err
		}
	}
	r := s.resources()
	soft := r.Memory.MemoryMB
	hard := max(soft, r.Memory.MemoryMaxMB)
	if soft <= 0 {
		return g, nil
	}
	memory := g.paths[2]
	err := errors.Join(
		write(memory, "memory.limit_in_bytes", strconv.FormatInt(hard<<20, 10)),
		write(memory, "memory.soft_limit_in_bytes", strconv.FormatInt(soft<<20, 10)),
		write(g.paths[1], "cpu.shares", strconv.FormatInt(max(2, r.Cpu.CpuShares), 10)),
	)
	if err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

func write(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) //nolint:gosec // the kernel's file
}

// pids are the processes in the freezer's group; false where there are no groups.
func (g *groups) pids() ([]int, bool) {
	if g == nil {
		return nil, false
	}
	text, err := os.ReadFile(filepath.Join(g.paths[0], "cgroup.procs"))
	if err != nil {
		return nil, true
	}
	var out []int
	for word := range strings.FieldsSeq(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil && !gone(pid) {
			out = append(out, pid)
		}
	}
	return out, true
}

// remove removes the groups and tells whether none is left.
func (g *groups) remove() bool {
	if g == nil {
		return true
	}
	all := true
	for _, path := range g.paths {
		if err := syscall.Rmdir(path); err != nil && !errors.Is(err, syscall.ENOENT) {
			all = false
		}
	}
	return all
}

// begin starts the process in its groups and on its cores. A child begins where the
// thread is that makes it, so the thread goes there and back: there is no moment at
// which the process is elsewhere.
func (p *process) begin() error {
	if p.groups == nil && len(p.spec.CPUs) == 0 {
		return p.cmd.Start()
	}
	runtime.LockOSThread()
	back, err := p.enter()
	if err == nil {
		err = p.cmd.Start()
	}
	if failed := back(); failed != nil {
		// The thread ends with this goroutine's lock on it. It must not be used again.
		return errors.Join(err, failed)
	}
	runtime.UnlockOSThread()
	return err
}

// enter moves the thread and returns the way back.
func (p *process) enter() (func() error, error) {
	var steps []func() error
	back := func() error {
		var errs []error
		for _, s := range steps {
			errs = append(errs, s())
		}
		return errors.Join(errs...)
	}
	if len(p.spec.CPUs) > 0 {
		var before, wanted unix.CPUSet
		if err := unix.SchedGetaffinity(0, &before); err != nil {
			return back, fmt.Errorf("affinity: %w", err)
		}
		for _, c := range p.spec.CPUs {
			// The node may have more cores than the machine.
			wanted.Set(c % runtime.NumCPU())
		}
		if err := unix.SchedSetaffinity(0, &wanted); err != nil {
			return back, fmt.Errorf("affinity: %w", err)
		}
		steps = append(steps, func() error { return unix.SchedSetaffinity(0, &before) })
	}
	if p.groups == nil {
		return back, nil
	}
	text, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		return back, err
	}
	id := strconv.Itoa(unix.Gettid())
	for i, controller := range []string{"freezer", "cpu", "memory"} {
		home, ok := homeOf(string(text), controller)
		if !ok {
			return back, fmt.Errorf("no group of %s", controller)
		}
		if err := write(p.groups.paths[i], "tasks", id); err != nil {
			return back, err
		}
		steps = append(steps, func() error { return write(filepath.Join(cgroupRoot, controller, home), "tasks", id) })
	}
	return back, nil
}

// homeOf finds the group of a controller in the text of /proc/PID/cgroup.
func homeOf(text, controller string) (string, bool) {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 {
			for name := range strings.SplitSeq(f[1], ",") {
				if name == controller {
					return f[2], true
				}
			}
		}
	}
	return "", false
}
