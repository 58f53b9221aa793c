package attrib

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/hostfs"
)

// dirCache is a directory of a hierarchy, or a name in one, as far as its path alone says:
// that is found out once and remembered while it is there.
type dirCache struct {
	path  string // below the hierarchy's root
	dir   string
	kind  dirKind
	owner Owner  // of a job
	seen  uint64 // the last scan that saw it

	container string // its id

	names map[string]*dirCache // all that may be directories
	sure  bool                 // the kernel said of each of those that it is one
	worth []*dirCache          // of these the jobs and those that lead to some, by path
	links int                  // of the directory when its names were read, 0 = not known
}

type dirKind int

const (
	passed    dirKind = iota // no job is there or below
	leading                  // jobs may be below
	occupied                 // a job's own cgroup
	contained                // a container's own, of whose job its path says nothing
)

// learn reports what a name in a directory is.
func (at *dirCache) learn(name string) *dirCache {
	child := &dirCache{path: at.path + "/" + name, dir: filepath.Join(at.dir, name)}
	own, container, isContainer := ParseContainer(child.path)
	switch owner, ok := ParsePath(child.path); {
	case isContainer && own == child.path:
		child.kind, child.container = contained, container
	case ok && owner.Base == child.path:
		child.kind, child.owner = occupied, owner
	case !ok && leads(child.path):
		child.kind = leading
	}
	return child
}

// few is how many directories are asked one by one whether they are there, for less than
// their list costs: that has dozens of files.
const few = 6

// look reads the names that are in the directory now. One in which nothing leads to a job
// is read again when it has another number of directories, or in a thorough scan; so is
// one of few that are all still there.
func (at *dirCache) look(list *listing, round uint64, all bool) {
	links := at.count()
	if links > 0 && links == at.links && !all && (len(at.worth) == 0 || at.complete()) {
		return
	}
	at.links = links
	seen, changed := 0, false
	at.sure = true
	err := list.each(at.dir, func(name []byte, kind byte, _ uint64) {
		if !maybeDir(kind) {
			return
		}
		child := at.names[string(name)]
		if child == nil {
			if at.names == nil {
				at.names = map[string]*dirCache{}
			}
			child = at.learn(string(name))
			at.names[string(name)] = child
			changed = changed || child.kind != passed
		}
		at.sure = at.sure && kind == unix.DT_DIR
		child.seen = round
		seen++
	})
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENODEV):
		at.names, at.worth, at.links = nil, nil, 0 // not there, or gone meanwhile
		return
	case err != nil:
		at.links = 0
		return // such as too many open files: what was there is believed to be there
	}
	if seen < len(at.names) {
		for name, child := range at.names {
			if child.seen != round {
				delete(at.names, name)
				changed = changed || child.kind != passed
			}
		}
	}
	if !changed {
		return
	}
	at.worth = at.worth[:0]
	for _, child := range at.names {
		if child.kind != passed {
			at.worth = append(at.worth, child)
		}
	}
	slices.SortFunc(at.worth, func(a, b *dirCache) int { return strings.Compare(a.path, b.path) })
}

// complete reports whether the directory's number of links, which is what it was, leaves room
// for the names that are known and no other, and these are there.
func (at *dirCache) complete() bool {
	const itself = 2
	if !at.sure || len(at.names) > few || at.links != itself+len(at.names) {
		return false
	}
	var st unix.Stat_t
	for _, child := range at.names {
		if unix.Lstat(child.dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			return false
		}
	}
	return true
}

// count is the number of the directory's links: its own two, and one of each directory in
// it. File systems that do not count them, and a directory that is not there, are 0.
func (at *dirCache) count() int {
	var st unix.Stat_t
	if unix.Stat(at.dir, &st) != nil || st.Nlink < 2 {
		return 0
	}
	return int(st.Nlink)
}

// base is a directory of a hierarchy from which on jobs are looked for.
type base struct {
	hierarchy hostfs.Hierarchy
	dir       *dirCache
	owner     uint32 // of the hierarchy's root
	owned     bool   // which the kernel said
}

// walk looks for jobs in the cgroups below a directory, where they may lie.
func (s *Scanner) walk(jobs map[Key]*Found, b base, at *dirCache) {
	h := b.hierarchy
	at.look(&s.list, s.round, s.all)
	for _, child := range at.worth {
		if child.kind == leading {
			if path.Base(child.path) == "pitchpipe" || s.admin(b, child.dir, nil) {
				s.walk(jobs, b, child)
			}
			continue
		}
		if child.kind == contained {
			s.noteContainer(b, child)
			continue
		}
		owner := child.owner
		if _, ok := s.contained[owner.Key]; ok {
			s.contained[owner.Key] = s.round // it lives in its container
			continue
		}
		if owner.Key.Manager == Local {
			s.note(jobs, h, owner, child.dir) // each attempt has a name of its own
			continue
		}
		var st unix.Stat_t
		if !s.admin(b, child.dir, &st) {
			continue
		}
		if owner.SLUID {
			s.waiting[owner.Key.ID] = true
			id, wait := s.sluid(owner.Key.ID, child.dir)
			if wait {
				continue
			}
			owner.Key.ID = id
		}
		f := s.note(jobs, h, owner, child.dir)
		if f.Birth == nil {
			f.Birth = map[string]uint64{}
		}
		f.Birth[h.Name] = st.Ino
		if owner.Key.Manager == Nomad && f.passer == nil && young(st) {
			f.passer = s.procs.executor
		}
	}
}

// note puts a job's cgroup down.
func (s *Scanner) note(jobs map[Key]*Found, h hostfs.Hierarchy, owner Owner, dir string) *Found {
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
	return f
}

// birth distinguishes a cgroup from one that is made later under its name.
func birth(dir string) (uint64, bool) {
	var st unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return 0, false
	}
	return st.Ino, true
}

// admin reports whether only the administrator can make cgroups in dir: it is owned
// as the hierarchy's root is, and not open to others. Who was given a subtree could
// otherwise build a scheduler's tree there. What the kernel says of dir it puts into st.
func (s *Scanner) admin(b base, dir string, st *unix.Stat_t) bool {
	if !b.owned {
		return false
	}
	if st == nil {
		st = new(unix.Stat_t)
	}
	if unix.Lstat(dir, st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	return s.procs.owner.say(dir, st.Uid) == b.owner && st.Mode&0o022 == 0
}

// passing is for how long after its making a task's cgroup may hold Nomad's executor.
const passing = 30 * time.Second

// young reports whether a cgroup was made lately.
func young(st unix.Stat_t) bool {
	return time.Since(time.Unix(st.Mtim.Unix())) < passing
}
