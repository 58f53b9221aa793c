package attrib

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/hostfs"
)

// maxDepth bounds how deep job cgroups nest: Slurm has job/step/user/task.
const maxDepth = 6

// members reads who is in cgroups.
type members struct {
	list listing
	buf  []byte
}

// processes lists those of a cgroup and of all below it.
func processes(dir string) (pids []int) {
	var m members
	m.walk(dir, 0, func(pid int) bool {
		pids = append(pids, pid)
		return true
	})
	return pids
}

// walk calls f for each process until it returns false, and reports whether it never did.
func (m *members) walk(dir string, depth int, f func(pid int) bool) bool {
	data, err := hostfs.ReadInto(m.buf, filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return true // it has gone
	}
	m.buf = data
	for line := range bytes.Lines(data) {
		// Processes outside our own pid namespace are listed as 0.
		if pid, ok := number(bytes.TrimSuffix(line, []byte{'\n'})); ok && !f(pid) {
			return false
		}
	}
	// A cgroup's directory holds dozens of files, and most often nothing else: it has two
	// links then, its name and its own dot. File systems that don't count them say 1.
	var st unix.Stat_t
	if depth >= maxDepth || unix.Stat(dir, &st) != nil || st.Nlink == 2 {
		return true
	}
	var names []string
	_ = m.list.each(dir, func(name []byte, kind byte, _ uint64) { // gone meanwhile: what was read is there
		if maybeDir(kind) {
			names = append(names, string(name))
		}
	})
	slices.Sort(names)
	for _, name := range names {
		if !m.walk(filepath.Join(dir, name), depth+1, f) {
			return false
		}
	}
	return true
}

// Processes lists the processes of a job now: those of its cgroup and of all
// cgroups below it, or those whose environment named it.
func (f Found) Processes() []int {
	if len(f.Dirs) == 0 {
		return f.Pids
	}
	var best []int
	for _, name := range slices.Sorted(maps.Keys(f.Dirs)) {
		// A job may be in one tree only half: the tree that knows most is right.
		if pids := processes(f.Dirs[name]); len(pids) > len(best) {
			best = pids
		}
	}
	if f.passer != nil {
		best = slices.DeleteFunc(best, f.passer)
	}
	slices.Sort(best)
	return slices.Compact(best)
}

// Populated reports whether Processes would list any, for less.
func (f Found) Populated() bool {
	if len(f.Dirs) == 0 {
		return len(f.Pids) > 0
	}
	if dir, ok := f.Dirs[hostfs.Unified]; ok && f.passer == nil {
		data, err := hostfs.Read(filepath.Join(dir, "cgroup.events"))
		if n, ok := hostfs.Count(data, "populated"); err == nil && ok && n > 0 {
			return true
		}
	}
	var m members
	for _, dir := range f.Dirs {
		if !m.walk(dir, 0, func(pid int) bool { return f.passer != nil && f.passer(pid) }) {
			return true
		}
	}
	return false
}

// Readable reports whether the list of processes of one of the job's cgroups can be read:
// else its processes are unknown.
func (f Found) Readable() bool {
	for _, dir := range f.Dirs {
		if _, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err == nil {
			return true
		}
	}
	return len(f.Dirs) == 0
}

// Fresh reports whether the cgroup of a task of Nomad was made a moment ago: its processes may
// be about to come.
func (f Found) Fresh() bool { return f.passer != nil }
