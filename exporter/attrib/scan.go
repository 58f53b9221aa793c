package attrib

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/hostfs"
)

// Found is a job that is on the node now.
type Found struct {
	Key    Key
	UID    uint32
	HasUID bool
	Dirs   map[string]string // its cgroup by the hierarchy's name; nil = it has none
	Pids   []int             // its processes, where the environment named them
}

// Scanner finds the jobs of the node.
type Scanner struct {
	root    hostfs.Root
	environ *environs

	hierarchies []hostfs.Hierarchy // of the last scan
	dirs        map[string]Key     // cgroup directory → job, of the last scan
}

// NewScanner reads below root. Nothing is read before the first call.
func NewScanner(root hostfs.Root) *Scanner {
	s := &Scanner{root: root, dirs: map[string]Key{}}
	s.environ = newEnvirons(root, s.byCgroup)
	return s
}

// Sources says by what means jobs can be found here.
func (s *Scanner) Sources() []api.Source {
	cgroups := api.Source{Name: "attrib/cgroup", Support: api.Supported}
	var names []string
	for _, h := range s.root.Hierarchies() {
		names = append(names, h.Name)
	}
	if len(names) == 0 {
		cgroups.Support, cgroups.Reason = api.Unsupported, "no cgroup hierarchy below "+s.root.Cgroup()
	} else {
		slices.Sort(names)
		cgroups.Reason = strings.Join(names, " ")
	}
	environ := api.Source{Name: "attrib/environ", Support: api.Supported}
	if _, err := hostfs.Read(s.root.Pid(os.Getpid(), "environ")); err != nil {
		environ.Support, environ.Reason = api.Unsupported, err.Error()
	} else if os.Geteuid() != 0 {
		environ.Reason = "own processes only: others need CAP_SYS_PTRACE"
	}
	return []api.Source{cgroups, environ}
}

// Scan lists the jobs of the node, in the order of their keys.
func (s *Scanner) Scan(ctx context.Context) []Found {
	jobs := map[Key]*Found{}
	clear(s.dirs)
	s.hierarchies = s.root.Hierarchies()
	self, err := s.root.Memberships(os.Getpid())
	if err != nil {
		self = nil // a generated tree: only the roots are looked at
	}
	for _, h := range s.hierarchies {
		if ctx.Err() != nil {
			break
		}
		s.walk(jobs, h, "")
		for _, m := range self {
			if !m.In(h) {
				continue
			}
			for dir := m.Path; dir != "/" && dir != "."; dir = path.Dir(dir) {
				s.walk(jobs, h, path.Join(dir, "pitchpipe"))
			}
		}
	}
	for key, f := range s.environ.scan(ctx) {
		if jobs[key] == nil {
			jobs[key] = f
		}
	}
	out := make([]Found, 0, len(jobs))
	for _, f := range jobs {
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Key.Manager, b.Key.Manager), cmp.Compare(a.Key.ID, b.Key.ID), a.Key.Attempt-b.Key.Attempt)
	})
	return out
}

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
		owner, ok := ParsePath(child)
		if !ok {
			if leads(child) {
				s.walk(jobs, h, child)
			}
			continue
		}
		if owner.Base != child {
			continue
		}
		f := jobs[owner.Key]
		if f == nil {
			f = &Found{Key: owner.Key, Dirs: map[string]string{}}
			jobs[owner.Key] = f
		}
		if owner.HasUID {
			f.UID, f.HasUID = owner.UID, true
		}
		dir := filepath.Join(h.Dir, child)
		f.Dirs[h.Name] = dir
		s.dirs[dir] = owner.Key
	}
}

// Locate tells which job of the last scan a process is in: by its cgroup, else by
// its environment. uid is the user that the kernel named for the process; it has
// to own a job that only the environment names. A job that has a cgroup is named
// by that alone: anybody can write an environment.
func (s *Scanner) Locate(pid int, uid uint32) (Key, bool) {
	if members, err := s.root.Memberships(pid); err == nil {
		if key, ok := s.byCgroup(members); ok {
			return key, true
		}
	}
	key, ok := s.environ.locate(pid, uid)
	if !ok || s.hasCgroup(key) {
		return Key{}, false
	}
	return key, true
}

// hasCgroup tells whether the last scan found a cgroup of the job.
func (s *Scanner) hasCgroup(key Key) bool {
	for _, owner := range s.dirs {
		if owner == key {
			return true
		}
	}
	return false
}

// byCgroup tells which job of the last scan owns one of the cgroups. A path that
// merely looks like a job's is not enough: its directory has to be one that the
// scan found.
func (s *Scanner) byCgroup(members []hostfs.Membership) (Key, bool) {
	for _, m := range members {
		owner, ok := ParsePath(m.Path)
		if !ok {
			continue
		}
		for _, h := range s.hierarchies {
			if key, ok := s.dirs[filepath.Join(h.Dir, owner.Base)]; ok && m.In(h) {
				return key, true
			}
		}
	}
	return Key{}, false
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
		if pids := processes(f.Dirs[name], 0); len(pids) > len(best) {
			best = pids
		}
	}
	slices.Sort(best)
	return slices.Compact(best)
}

// User tells whose processes these are: the first user among them who is not root,
// since a supervisor may run as root beside the job; ok is false where none lives.
func (s *Scanner) User(pids []int) (uid uint32, ok bool) {
	for _, pid := range pids {
		st, err := os.Stat(s.root.Pid(pid))
		if err != nil {
			continue
		}
		sys, known := st.Sys().(*syscall.Stat_t)
		if !known {
			continue
		}
		uid, ok = sys.Uid, true
		if uid != 0 {
			break
		}
	}
	return uid, ok
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
