package leaf

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

// Top is the cgroup below which all leaves are. It is no job's: pitchpipe/ belongs
// to the local scheduler.
const Top = "pitchpipe-perf"

const young = time.Minute

// ErrNowhere means that leaves are of no use here: there is v2 alone, where jobs have
// cgroups where perf looks, or no tree that perf looks in.
var ErrNowhere = errors.New("no v1 trees beside the one that perf looks in")

// Maker makes leaves. It is used by one goroutine.
type Maker struct {
	tree string // name of the hierarchy
	top  string
}

// Possible tells whether the host is one where leaves are of use: nil, or
// ErrNowhere.
func Possible(root hostfs.Root) error {
	_, err := where(root)
	return err
}

// where is the hierarchy that perf looks in, on hosts whose schedulers make their cgroups in
// others: a v1 tree of perf's own, which neither Slurm nor Nomad knows, else v2 beside v1.
func where(root hostfs.Root) (hostfs.Hierarchy, error) {
	all := root.Hierarchies()
	h, ok := hostfs.PerfHierarchy(all)
	if !ok {
		return h, ErrNowhere
	}
	others := slices.ContainsFunc(all, func(o hostfs.Hierarchy) bool { return !o.V2 && o.Dir != h.Dir })
	if !others {
		return h, ErrNowhere
	}
	return h, nil
}

// New makes the cgroup that holds the leaves and clears away what an earlier
// exporter left empty. It fails with ErrNowhere, or with what the kernel says.
func New(root hostfs.Root) (*Maker, error) {
	h, err := where(root)
	if err != nil {
		return nil, err
	}
	m := &Maker{tree: h.Name, top: filepath.Join(h.Dir, Top)}
	if err := os.Mkdir(m.top, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("leaf: %w", err)
	}
	entries, err := os.ReadDir(m.top)
	if err != nil {
		return nil, fmt.Errorf("leaf: %w", err)
	}
	for _, e := range entries {
		// One that is young may be just about to get its first process.
		if info, err := e.Info(); err == nil && e.IsDir() && time.Since(info.ModTime()) > young {
			_ = unix.Rmdir(filepath.Join(m.top, e.Name())) // refused where processes are in it
		}
	}
	return m, nil
}

// Hierarchy is the name of the tree in which the leaves are, as attrib.Found.Dirs has it: a
// job that has a cgroup there needs none.
func (m *Maker) Hierarchy() string { return m.tree }

// Put makes the leaf where it is not there and moves those of the processes to it
// that are elsewhere. Processes that ended meanwhile are no error; an error of some
// processes does not keep the others away.
func (m *Maker) Put(name string, pids []int) (dir string, err error) {
	if name == "" || strings.ContainsAny(name, "/\n") || strings.HasPrefix(name, ".") {
		return "", fmt.Errorf("leaf: %q is no name", name)
	}
	dir = filepath.Join(m.top, name)
	if err := os.MkdirAll(dir, 0o755); err != nil { // the top too: another exporter may have left
		return "", fmt.Errorf("leaf: %w", err)
	}
	list := filepath.Join(dir, "cgroup.procs")
	data, err := hostfs.Read(list)
	if err != nil {
		return "", fmt.Errorf("leaf: %w", err)
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
		if err := write(list, text); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("leaf: process %d: %w", pid, err))
		}
	}
	return dir, errors.Join(errs...)
}

func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Remove takes the leaf away. Processes that are still in it keep it; it is then
// cleared away by a later New.
func (m *Maker) Remove(name string) error {
	err := unix.Rmdir(filepath.Join(m.top, name))
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("leaf %s: %w", name, err)
	}
	return nil
}

// Close removes the cgroup of the leaves where none is left.
func (m *Maker) Close() error {
	if err := unix.Rmdir(m.top); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("leaf: %w", err)
	}
	return nil
}
