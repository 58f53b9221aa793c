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
	pids []int
}

// processes lists those of a cgroup and of all below it.
func processes(dir string) []int {
	var m members
	m.walk(dir, 0, func(pid int) bool {
		m.pids = append(m.pids, pid)
		return true
	})
	return m.pids
}

// walk calls f for each process until it returns false, and reports whether it never did.
func (m *members) walk(dir string, depth int, f func(pid int) bool) bool {
	data, err := hostfs.ReadInto(m.buf, filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return true // it has gone
	}
	m.buf = data
	for len(data) > 0 {
		line := data
		if i := bytes.IndexByte(data, '\n'); i >= 0 {
			line, data = data[:i], data[i+1:]
		} else {
			data = nil
		}
		// Processes outside our own pid namespace are listed as 0.
		if pid, ok := number(line); ok && !f(pid) {
			return false
		}
	}
	if depth >= maxDepth {
		return true
	}
	for _, name := range m.below(dir) {
		if !m.walk(filepath.Join(dir, name), depth+1, f) {
			return false
		}
	}
	return true
}

// below names the cgroups in a cgroup. Its directory holds dozens of files, and most
// often nothing else, as its number of links says.
func (m *members) below(dir string) []string {
	var st unix.Stat_t
	const itself = 2 // its name and its own dot; file systems that don't count say 1
	if unix.Stat(dir, &st) != nil || st.Nlink == itself {
		return nil
	}
	var names []string
	_ = m.list.each(dir, func(name []byte, kind byte, _ uint64) { // gone meanwhile: what was read is there
		if maybeDir(kind) {
			names = append(names, string(name))
		}
	})
	slices.Sort(names)
	return names
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
	var m members
	if dir, ok := f.Dirs[hostfs.Unified]; ok && f.passer == nil && m.someone(dir) {
		return true
	}
	passes := func(pid int) bool { return f.passer != nil && f.passer(pid) }
	for _, dir := range f.Dirs {
		if !m.walk(dir, 0, passes) {
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

// Fresh reports whether the cgroup of a task of Nomad was made a moment ago: who is to be in
// it may be on his way.
func (f Found) Fresh() bool { return f.passer != nil }

// someone reports whether the kernel says that a v2 cgroup or one below it has a process.
func (m *members) someone(dir string) bool {
	data, err := hostfs.ReadInto(m.buf, filepath.Join(dir, "cgroup.events"))
	if err != nil {
		return false
	}
	m.buf = data
	n, ok := hostfs.Count(data, "populated")
	return ok && n > 0
}
