package attrib

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"syscall"

	"pitchpipe/exporter/hostfs"
)

// walk looks for jobs in the cgroups below rel, where they may lie.
func (s *Scanner) walk(jobs map[Key]*Found, h hostfs.Hierarchy, rel string) {
	entries, err := os.ReadDir(filepath.Join(h.Dir, rel))
	if err != nil {
		return // not there, or gone meanwhile
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		child := rel + "/" + e.Name()
		dir := filepath.Join(h.Dir, child)
		owner, ok := ParsePath(child)
		if !ok {
			if leads(child) && (path.Base(child) == "pitchpipe" || s.admin(h, dir)) {
				s.walk(jobs, h, child)
			}
			continue
		}
		if owner.Base != child || owner.Key.Manager != Local && !s.admin(h, dir) {
			continue
		}
		if owner.SLUID {
			s.waiting[owner.Key.ID] = true
			id, wait := s.sluid(owner.Key.ID, dir)
			if wait {
				continue
			}
			owner.Key.ID = id
		}
		s.note(jobs, h, owner, dir)
	}
}

// note puts a job's cgroup down.
func (s *Scanner) note(jobs map[Key]*Found, h hostfs.Hierarchy, owner Owner, dir string) {
	f := jobs[owner.Key]
	if f == nil {
		f = &Found{Key: owner.Key, Dirs: map[string]string{}, Confirmed: true}
		jobs[owner.Key] = f
	}
	if owner.HasUID {
		f.UID, f.HasUID = owner.UID, true
	}
	f.Dirs[h.Name] = dir
	s.dirs[dir] = owner.Key
	if owner.Key.Manager == Local {
		return // each attempt has a name of its own
	}
	if born, ok := birth(dir); ok {
		if f.Birth == nil {
			f.Birth = map[string]uint64{}
		}
		f.Birth[h.Name] = born
	}
	if owner.Key.Manager == Nomad && f.passer == nil && s.young(dir) {
		f.passer = s.procs.executor
	}
}

// birth tells a cgroup from one that is made later under its name.
func birth(dir string) (uint64, bool) {
	st, err := os.Stat(dir)
	if err != nil {
		return 0, false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return sys.Ino, true
}

// admin tells whether only the administrator can make cgroups in dir: it is owned
// as the hierarchy's root is, and not open to others. Who was given a subtree could
// otherwise build a scheduler's tree there.
func (s *Scanner) admin(h hostfs.Hierarchy, dir string) bool {
	root, ok := s.procs.owner(h.Dir)
	if !ok {
		return false
	}
	uid, ok := s.procs.owner(dir)
	if !ok || uid != root {
		return false
	}
	st, err := os.Lstat(dir)
	return err == nil && st.Mode().Perm()&0o022 == 0
}

// maxDepth bounds how deep job cgroups nest: Slurm has job/step/user/task.
const maxDepth = 6

func processes(dir string, depth int) []int {
	data, err := hostfs.Read(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return nil
	}
	var pids []int
	for line := range hostfs.Lines(data) {
		// Processes outside our own pid namespace are listed as 0.
		if pid, err := strconv.Atoi(line); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	if depth >= maxDepth {
		return pids
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return pids
	}
	for _, e := range entries {
		if e.IsDir() {
			pids = append(pids, processes(filepath.Join(dir, e.Name()), depth+1)...)
		}
	}
	return pids
}
