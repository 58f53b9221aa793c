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

// processes lists those of a cgroup and of all below it.
func processes(dir string) []int {
	var list listing
	return descend(&list, dir, 0, nil)
}

func descend(list *listing, dir string, depth int, pids []int) []int {
	data, err := hostfs.Read(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return pids // it has gone
	}
	for line := range bytes.Lines(data) {
		// Processes outside our own pid namespace are listed as 0.
		if pid, ok := number(bytes.TrimSuffix(line, []byte{'\n'})); ok {
			pids = append(pids, pid)
		}
	}
	// A cgroup's directory holds dozens of files, and most often nothing else: it has two
	// links then, its name and its own dot. File systems that don't count them say 1.
	var st unix.Stat_t
	if depth >= maxDepth || unix.Stat(dir, &st) != nil || st.Nlink == 2 {
		return pids
	}
	var names []string
	_ = list.each(dir, func(name []byte, kind byte, _ uint64) { // gone meanwhile: what was read is there
		if maybeDir(kind) {
			names = append(names, string(name))
		}
	})
	slices.Sort(names)
	for _, name := range names {
		pids = descend(list, filepath.Join(dir, name), depth+1, pids)
	}
	return pids
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
