package cgroup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/exporter/hostfs"
)

// ErrInUse means that the leaf exists and holds processes: another scheduler of
// the same name runs on this machine.
var ErrInUse = errors.New("cgroup is in use by another job of this id, as under another controller of this machine: give one of them another --local.cluster")

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
	// Again: another process that found the parent empty may have removed it since Probe.
	if why := l.tree.prepare(); len(why) > 0 {
		if now := l.tree.offered(); l.tree.Cpuset && !now.Cpuset || l.tree.Memory && !now.Memory {
			return errors.Join(why...)
		}
	}
	for _, root := range l.tree.hierarchies() {
		if err := os.Mkdir(filepath.Join(root, Parent, l.name), 0o755); err != nil {
			return err
		}
	}
	return l.limit(limits)
}

// limit writes the limits into the files that the kernel made with the leaf.
func (l Leaf) limit(limits Limits) error {
	type file struct {
		name, text string
		optional   bool
	}
	var files []file
	t, bytes := l.tree, strconv.FormatInt(limits.MemoryBytes, 10)
	if t.Cpuset && t.Kind != V2 { // no process can be in a leaf that has no CPU or no memory node
		mems, err := os.ReadFile(filepath.Join(t.Root, "cpuset", Parent, "cpuset.mems"))
		if err != nil {
			return err
		}
		files = append(files, file{name: "cpuset.mems", text: string(mems)})
		if len(limits.CPUs) == 0 {
			limits.CPUs = t.CPUs()
		}
	}
	if t.Cpuset && len(limits.CPUs) > 0 {
		files = append(files, file{name: "cpuset.cpus", text: FormatList(limits.CPUs)})
	}
	switch {
	case !t.Memory || limits.MemoryBytes <= 0:
	case t.Kind == V2:
		// Kernels without swap have no limit of it; those before 4.19 kill one process
		// at a time, and the supervisor the rest.
		files = append(files, file{name: "memory.max", text: bytes}, file{"memory.swap.max", "0", true}, file{"memory.oom.group", "1", true})
	default:
		// The second is memory and swap together: no swap beyond the limit.
		files = append(files, file{name: "memory.limit_in_bytes", text: bytes}, file{"memory.memsw.limit_in_bytes", bytes, true})
	}
	for _, f := range files {
		controller, _, _ := strings.Cut(f.name, ".")
		err := write(filepath.Join(t.controller(controller), Parent, l.name, f.name), f.text)
		if err != nil && !(f.optional && errors.Is(err, os.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// Dirs lists the leaf's directories that exist, the one that perf counts by last.
func (l Leaf) Dirs() (out []string) {
	for _, root := range l.tree.hierarchies() {
		if dir := filepath.Join(root, Parent, l.name); exists(dir) {
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
			if err == nil && d.Name() == "cgroup.procs" {
				var list []string
				list, err = words(path)
				for _, word := range list {
					if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
						out = append(out, pid)
					}
				}
			}
			// It may go away meanwhile, and one that became threaded lists its processes in the
			// domain above it.
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) {
				return nil
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("processes of %s: %w", dir, err)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// OOMKills is how many processes the kernel killed for the leaf's memory limit.
func (l Leaf) OOMKills() uint64 {
	n, _ := hostfs.Count(l.memory("memory.oom_control", "memory.events"), "oom_kill") // without it there were none
	return n
}

// Cache is the page cache that the leaf holds.
func (l Leaf) Cache() uint64 {
	data := l.memory("memory.stat", "memory.stat")
	n, ok := hostfs.Count(data, "total_cache")
	if !ok {
		n, _ = hostfs.Count(data, "file")
	}
	return n
}

// Peak is the most memory that the leaf ever held, page cache included; 0 = not known.
func (l Leaf) Peak() uint64 {
	n, _ := hostfs.Number(l.memory("memory.max_usage_in_bytes", "memory.peak"))
	return n
}

// memory reads a file of the memory controller, by its name in either version.
func (l Leaf) memory(v1, v2 string) []byte {
	if !l.tree.Memory {
		return nil
	}
	if l.tree.Kind == V2 {
		v1 = v2
	}
	data, _ := os.ReadFile(filepath.Join(l.tree.controller("memory"), Parent, l.name, v1))
	return data
}

// Kill ends every process of the leaf, and returns when they are gone or ctx ended.
func (l Leaf) Kill(ctx context.Context) error {
	for {
		pids, err := l.Pids()
		if err != nil {
			return err
		}
		pids = slices.DeleteFunc(pids, func(pid int) bool {
			p, err := ReadProcess(pid)
			return err != nil || p.Ended
		})
		if len(pids) == 0 {
			return nil
		}
		// The kernel's own way, which no fork escapes, where it is offered.
		kill := filepath.Join(cmp.Or(l.tree.Unified, "none"), Parent, l.name, "cgroup.kill")
		if write(kill, "1") != nil {
			for _, pid := range pids {
				if err := Signal(pid, unix.SIGKILL, func() bool { return l.has(pid) }); err != nil {
					return fmt.Errorf("killing what is in %s: %w", l.name, err)
				}
			}
		}
		if err := driver.Pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("killing what is left in %s: %w", l.name, err)
		}
	}
}

func (l Leaf) has(pid int) bool {
	pids, err := l.Pids()
	return err == nil && slices.Contains(pids, pid)
}

// Remove removes the leaf with what is below it. A missing leaf is not an error.
func (l Leaf) Remove(ctx context.Context) error {
	for _, dir := range l.Dirs() {
		if err := removeTree(ctx, dir); err != nil {
			return fmt.Errorf("removing cgroup: %w", err)
		}
	}
	return nil
}

func removeTree(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(ctx, filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for range 200 {
		err = unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		if err := driver.Pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", dir, err)
}
