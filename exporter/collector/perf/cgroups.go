package perf

import (
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

	"pitchpipe/exporter/hostfs"
)

// CgroupsTop is the cgroup below which all perf cgroups are. pitchpipe/ belongs to the
// local scheduler.
const CgroupsTop = "pitchpipe-perf"

// youngCgroup is the age from which on an empty perf cgroup is a leftover.
const youngCgroup = time.Minute

// ErrNoCgroupsNeeded means that perf cgroups are of no use here: there is v2 alone, where
// jobs have cgroups where perf looks, or no tree that perf looks in.
var ErrNoCgroupsNeeded = errors.New("no v1 trees besides the one that perf looks in")

// Cgroups gives jobs that have no cgroup in perf's hierarchy one there. It moves processes
// in that hierarchy only: the v1 tree of perf_event where one is mounted, else v2 on a
// hybrid host, where it holds no controller; so nothing limits the job there, and in the
// trees where the scheduler limits and counts nothing changes.
//
// It is off unless the administrator asks for it (--perf.leaf), since a program that follows
// processes by their v2 cgroup, as systemd does on some hybrid hosts, loses track of those
// that were moved. It belongs to one goroutine.
type Cgroups struct {
	tree string // name of the hierarchy
	top  string
}

// CgroupsNeeded returns the hierarchy that perf looks in, on hosts whose schedulers make their
// cgroups in others: perf's own v1 tree, which Slurm and Nomad do not know, else v2 next to
// v1. On others it returns ErrNoCgroupsNeeded.
func CgroupsNeeded(root hostfs.Root) (hostfs.Hierarchy, error) {
	all := root.Hierarchies()
	h, ok := hostfs.PerfHierarchy(all)
	if !ok || !slices.ContainsFunc(all, func(o hostfs.Hierarchy) bool { return !o.V2 && o.Dir != h.Dir }) {
		return h, ErrNoCgroupsNeeded
	}
	return h, nil
}

// NewCgroups makes the cgroup that holds the others and removes what an earlier exporter
// left empty. It fails with ErrNoCgroupsNeeded, or with the kernel's error.
func NewCgroups(root hostfs.Root) (*Cgroups, error) {
	h, err := CgroupsNeeded(root)
	if err != nil {
		return nil, err
	}
	m := &Cgroups{tree: h.Name, top: filepath.Join(h.Dir, CgroupsTop)}
	if err := os.Mkdir(m.top, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("perf cgroup: %w", err)
	}
	entries, err := os.ReadDir(m.top)
	if err != nil {
		return nil, fmt.Errorf("perf cgroup: %w", err)
	}
	for _, e := range entries {
		// One that is young may be just about to get its first process.
		if info, err := e.Info(); err == nil && e.IsDir() && time.Since(info.ModTime()) > youngCgroup {
			_ = unix.Rmdir(filepath.Join(m.top, e.Name())) // refused where processes are in it
		}
	}
	return m, nil
}

// Hierarchy is the name of their tree, as attrib.Found.Dirs has it: a job that has a cgroup
// there needs none.
func (m *Cgroups) Hierarchy() string { return m.tree }

// Put makes a cgroup if it is not there and moves those of the processes to it
// that are elsewhere. Processes that ended meanwhile are not an error; an error of some
// processes does not keep the others away.
func (m *Cgroups) Put(name string, pids []int) (dir string, err error) {
	if name == "" || strings.ContainsAny(name, "/\n") || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("perf cgroup: %q is no name", name)
	}
	dir = filepath.Join(m.top, name)
	if err := os.MkdirAll(dir, 0o755); err != nil { // the top too: another exporter may have left
		return "", fmt.Errorf("perf cgroup: %w", err)
	}
	list := filepath.Join(dir, "cgroup.procs")
	data, err := hostfs.Read(list)
	if err != nil {
		return "", fmt.Errorf("perf cgroup: %w", err)
	}
	inside := make(map[string]bool, len(pids))
	for line := range hostfs.Lines(data) {
		inside[line] = true
	}
	var errs []error
	for _, pid := range pids {
		text := strconv.Itoa(pid)
		if inside[text] {
			continue
		}
		if err := os.WriteFile(list, []byte(text), 0); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("perf cgroup: process %d: %w", pid, err))
		}
	}
	return dir, errors.Join(errs...)
}

// Remove removes a cgroup. Processes that are still in it keep it; a later NewCgroups
// removes it then.
func (m *Cgroups) Remove(name string) error { return remove(filepath.Join(m.top, name)) }

// Close removes the cgroup that holds the others if none is left.
func (m *Cgroups) Close() error {
	err := remove(m.top)
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) {
		return nil
	}
	return err
}

func remove(dir string) error {
	err := unix.Rmdir(dir)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("perf cgroup %s: %w", filepath.Base(dir), err)
	}
	return nil
}
