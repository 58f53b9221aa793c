package cgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/containerd/cgroups/v3/cgroup1"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// ErrInUse means that the leaf exists and holds processes: another scheduler of
// the same name runs on this machine.
var ErrInUse = errors.New("cgroup is in use")

// Limits are what a leaf confines. Zero fields confine nothing.
type Limits struct {
	CPUs        []int
	MemoryBytes int64
}

// Leaf is the cgroup of one attempt in every hierarchy of the tree.
type Leaf struct {
	tree Tree
	name string
}

// Open returns the leaf of that name, which need not exist.
func (t Tree) Open(name string) Leaf { return Leaf{tree: t, name: name} }

// Create makes the leaf afresh. It is ErrInUse where processes are in it.
func (t Tree) Create(ctx context.Context, name string, limits Limits) (Leaf, error) {
	l := t.Open(name)
	pids, err := l.Pids()
	if err != nil {
		return l, err
	}
	if len(pids) > 0 {
		return l, fmt.Errorf("%s/%s: %w", Parent, name, ErrInUse)
	}
	// An empty one was left by a crash; its counters are not this attempt's.
	if err := l.Remove(ctx); err != nil {
		return l, err
	}
	if err := l.create(limits); err != nil {
		return l, errors.Join(fmt.Errorf("making cgroup %s/%s: %w", Parent, name, err), l.Remove(ctx))
	}
	return l, nil
}

func (l Leaf) create(limits Limits) error {
	t := l.tree
	switch t.Kind {
	case None:
		return nil
	case V1, Hybrid:
		if _, err := cgroup1.New(cgroup1.StaticPath(filepath.Join("/", Parent, l.name)),
			l.resources(limits), cgroup1.WithHierarchy(t.subsystems)); err != nil {
			return err
		}
		if t.Unified == "" {
			return nil
		}
		return os.Mkdir(filepath.Join(t.Unified, Parent, l.name), 0o755)
	case V2:
		return l.createV2(limits)
	}
	return fmt.Errorf("cgroups of kind %q", t.Kind)
}

// createV2 makes and limits the leaf of the one hierarchy of version 2.
func (l Leaf) createV2(limits Limits) error {
	// Again: whoever found the parent empty may have removed it since Probe.
	if err := errors.Join(l.tree.handDownAll()...); err != nil && (l.tree.Cpuset || l.tree.Memory) {
		handed := l.tree.handed()
		if l.tree.Cpuset && !slices.Contains(handed, "cpuset") || l.tree.Memory && !slices.Contains(handed, "memory") {
			return err
		}
	}
	dir := filepath.Join(l.tree.Unified, Parent, l.name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return l.tree.limitV2(dir, limits)
}

// limitV2 writes the limits into the files that the kernel made with the leaf.
func (t Tree) limitV2(dir string, limits Limits) error {
	write := func(name, text string) error {
		// Not os.WriteFile: what the kernel did not make is not to be made.
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return errors.Join(err, f.Close())
	}
	if t.Cpuset && len(limits.CPUs) > 0 {
		if err := write("cpuset.cpus", FormatList(limits.CPUs)); err != nil {
			return err
		}
	}
	if !t.Memory || limits.MemoryBytes <= 0 {
		return nil
	}
	if err := write("memory.max", strconv.FormatInt(limits.MemoryBytes, 10)); err != nil {
		return err
	}
	// Kernels without swap have no limit of it; those before 4.19 kill one process
	// at a time, and the supervisor the rest.
	for name, text := range map[string]string{"memory.swap.max": "0", "memory.oom.group": "1"} {
		if err := write(name, text); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// subsystems lists the version 1 controllers that a leaf is made in.
func (t Tree) subsystems() ([]cgroup1.Subsystem, error) {
	var out []cgroup1.Subsystem
	if t.Cpuset {
		out = append(out, cgroup1.NewCpuset(t.Root))
	}
	if t.Memory {
		out = append(out, cgroup1.NewMemory(t.Root, cgroup1.OptionalSwap()))
	}
	// Accounting and perf want the leaf too, wherever they are mounted.
	for _, s := range []struct {
		name cgroup1.Name
		make func(string) cgroup1.Subsystem
	}{
		{cgroup1.Cpuacct, func(r string) cgroup1.Subsystem { return cgroup1.NewCpuacct(r) }},
		{cgroup1.PerfEvent, func(r string) cgroup1.Subsystem { return cgroup1.NewPerfEvent(r) }},
	} {
		if exists(filepath.Join(t.Root, string(s.name), "cgroup.procs")) {
			out = append(out, s.make(t.Root))
		}
	}
	return out, nil
}

func (l Leaf) resources(limits Limits) *specs.LinuxResources {
	res := &specs.LinuxResources{}
	if l.tree.Cpuset && len(limits.CPUs) > 0 {
		res.CPU = &specs.LinuxCPU{Cpus: FormatList(limits.CPUs)}
	}
	if l.tree.Memory && limits.MemoryBytes > 0 {
		res.Memory = &specs.LinuxMemory{Limit: &limits.MemoryBytes}
		if exists(filepath.Join(l.tree.Root, "memory", "memory.memsw.limit_in_bytes")) {
			res.Memory.Swap = &limits.MemoryBytes // memory and swap together: no swap beyond the limit
		}
	}
	return res
}

// Dirs lists the leaf's directories that exist, the one that perf counts by last.
func (l Leaf) Dirs() []string {
	var roots []string
	switch l.tree.Kind {
	case None:
	case V1, Hybrid:
		for _, c := range []cgroup1.Name{cgroup1.Cpuset, cgroup1.Memory, cgroup1.Cpuacct, cgroup1.PerfEvent} {
			roots = append(roots, filepath.Join(l.tree.Root, string(c)))
		}
	case V2:
	}
	if l.tree.Unified != "" {
		roots = append(roots, l.tree.Unified)
	}
	var out []string
	for _, r := range roots {
		if dir := filepath.Join(r, Parent, l.name); exists(dir) {
			out = append(out, dir)
		}
	}
	return out
}

// Add moves a process and all its threads into the leaf.
func (l Leaf) Add(pid int) error {
	for _, dir := range l.Dirs() {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("moving process %d into %s: %w", pid, dir, err)
		}
	}
	return nil
}

// Pids lists the processes in any of the leaf's directories.
func (l Leaf) Pids() ([]int, error) {
	var out []int
	for _, dir := range l.Dirs() {
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV) {
				return nil // it went away meanwhile
			}
			if err != nil || d.Name() != "cgroup.procs" {
				return err
			}
			pids, err := readPids(path)
			out = append(out, pids...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("processes of %s: %w", dir, err)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func readPids(path string) ([]int, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []int
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err == nil && pid > 0 {
			out = append(out, pid)
		}
	}
	err = lines.Err()
	// One that became threaded lists its processes in the domain above it.
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) {
		err = nil
	}
	return out, errors.Join(err, f.Close())
}

// OOMKills tells how many processes the kernel killed for the leaf's memory
// limit.
func (l Leaf) OOMKills() int64 {
	file, key := "", "oom_kill"
	switch {
	case !l.tree.Memory:
		return 0
	case l.tree.Kind == V2:
		file = filepath.Join(l.tree.Unified, Parent, l.name, "memory.events")
	default:
		file = filepath.Join(l.tree.Root, "memory", Parent, l.name, "memory.oom_control")
	}
	fields := words(file)
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i] == key {
			n, err := strconv.ParseInt(fields[i+1], 10, 64)
			if err == nil {
				return n
			}
		}
	}
	return 0
}
