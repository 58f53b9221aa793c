package attrib

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/hostfs"
)

// dirCache is a directory of a hierarchy, or a name in one. What its path says is found out
// once.
type dirCache struct {
	path  string // below the hierarchy's root
	dir   string
	leads bool   // jobs may be below
	isJob bool   // it is a job's own
	owner Owner  // of that
	seen  uint64 // the last scan that saw it

	names map[string]*dirCache // all that may be directories
	worth []*dirCache          // of these the jobs and those that lead to some, by path
	links uint64               // of the directory when its names were read
}

// look reads the names that are in the directory now. If none of them leads to a job, it
// reads them again when the number of links changed, or in a thorough scan.
func (at *dirCache) look(list *listing, round uint64, all bool) {
	var st unix.Stat_t
	if unix.Stat(at.dir, &st) != nil || st.Nlink < 2 { // some file systems do not count
		st.Nlink = 0
	}
	if st.Nlink > 0 && st.Nlink == at.links && !all && len(at.worth) == 0 {
		return
	}
	at.links = st.Nlink
	if at.names == nil {
		at.names = map[string]*dirCache{}
	}
	changed := false
	err := list.each(at.dir, func(name []byte, kind byte, _ uint64) {
		if !maybeDir(kind) {
			return
		}
		child := at.names[string(name)]
		if child == nil {
			child = &dirCache{path: at.path + "/" + string(name), dir: filepath.Join(at.dir, string(name))}
			owner, ok := ParsePath(child.path)
			child.owner, child.isJob = owner, ok && owner.Base == child.path
			child.leads = !ok && leads(child.path)
			at.names[string(name)] = child
			changed = true
		}
		child.seen = round
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ENODEV) {
		at.links = 0
		return // such as too many open files: what was there is believed to be there
	}
	maps.DeleteFunc(at.names, func(_ string, child *dirCache) bool {
		changed = changed || child.seen != round
		return child.seen != round
	})
	if !changed {
		return
	}
	at.worth = at.worth[:0]
	for _, child := range at.names {
		if child.isJob || child.leads {
			at.worth = append(at.worth, child)
		}
	}
	slices.SortFunc(at.worth, func(a, b *dirCache) int { return strings.Compare(a.path, b.path) })
}

// base is a directory of a hierarchy below which jobs may be.
type base struct {
	hierarchy hostfs.Hierarchy
	dir       *dirCache
	owner     uint32 // of the hierarchy's root
	owned     bool   // owner is known
}

// orient finds the hierarchies, and where in them jobs may begin: at the root, and for
// local jobs below the exporter's own ancestors too.
func (s *Scanner) orient() {
	self, _ := s.root.Memberships(s.root.Self()) // none in a generated tree: only the roots are looked at
	known := map[string]*dirCache{}
	for _, b := range s.bases {
		known[b.dir.dir] = b.dir
	}
	s.hierarchies, s.bases = s.root.Hierarchies(), s.bases[:0]
	for _, h := range s.hierarchies {
		owner, owned := s.ownerOf(h.Dir)
		from := func(rel string) {
			at := known[filepath.Join(h.Dir, rel)]
			if at == nil {
				at = &dirCache{path: rel, dir: filepath.Join(h.Dir, rel), leads: true}
			}
			s.bases = append(s.bases, base{h, at, owner, owned})
		}
		from("")
		for _, m := range self {
			if !h.Lists(m) {
				continue
			}
			for dir := m.Path; dir != "/" && dir != "."; dir = path.Dir(dir) {
				from(path.Join(dir, "pitchpipe"))
			}
		}
	}
}

// walk looks for jobs in the cgroups below a directory.
func (s *Scanner) walk(jobs map[Key]*Found, b base, at *dirCache) {
	at.look(&s.list, s.round, s.all)
	for _, child := range at.worth {
		var st unix.Stat_t
		switch owner := child.owner; {
		case child.leads:
			if path.Base(child.path) == "pitchpipe" || s.admin(b, child.dir, &st) {
				s.walk(jobs, b, child)
			}
		case owner.Key.Manager == Local:
			s.note(jobs, b.hierarchy, owner, child.dir) // each attempt has its own name
		case !s.admin(b, child.dir, &st):
		case owner.Alias:
			key, ok := s.resolve(owner.Key, child.dir)
			if !ok {
				continue
			}
			owner.Key = key
			f := s.note(jobs, b.hierarchy, owner, child.dir)
			f.born(b.hierarchy.Name, st.Ino)
			if key.Manager == Nomad {
				f.passer = nil // Nomad's executor never goes into a container
				s.contained[key] = s.round
			}
		default:
			if _, ok := s.contained[owner.Key]; ok {
				s.contained[owner.Key] = s.round // its container stands for it
				continue
			}
			f := s.note(jobs, b.hierarchy, owner, child.dir)
			f.born(b.hierarchy.Name, st.Ino)
			if owner.Key.Manager == Nomad && time.Since(time.Unix(st.Mtim.Unix())) < passing {
				f.passer = s.executor
			}
		}
	}
}

// passing is how long after its creation a task's cgroup may hold Nomad's executor.
const passing = 30 * time.Second

// note enters a job's cgroup.
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

// admin reports whether only the administrator can make cgroups in dir: it is owned
// as the hierarchy's root is, and not open to others. Otherwise the owner of a subtree could
// build a scheduler's tree there. st gets what the kernel says about dir.
func (s *Scanner) admin(b base, dir string, st *unix.Stat_t) bool {
	return b.owned && unix.Lstat(dir, st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR &&
		s.owner(dir, st.Uid) == b.owner && st.Mode&0o022 == 0
}

// alias is what is known of a name that stands for a job.
type alias struct {
	key   Key    // zero = unknown
	looks int    // scans in which it had a process and was unknown
	seen  uint64 // the last scan that saw it
}

// resolve finds the job that an alias stands for: an SLUID by the title of a step daemon in the
// cgroup, a container by the environment of its first process. An SLUID that stays unknown is
// the job's id.
func (s *Scanner) resolve(name Key, dir string) (Key, bool) {
	a := s.aliases[name.ID]
	if a == nil {
		a = &alias{}
		s.aliases[name.ID] = a
	}
	if a.seen != s.round && a.key == (Key{}) && a.looks < settleScans {
		if pids := processes(dir); len(pids) > 0 { // else it is being made
			if a.looks++; due(a.looks - 1) {
				a.key = s.identify(name, a, pids)
			}
		}
	}
	a.seen = s.round
	if a.key == (Key{}) && a.looks >= settleScans && name.Manager == Slurm {
		a.key = name
	}
	return a.key, a.key != Key{}
}

func (s *Scanner) identify(name Key, a *alias, pids []int) Key {
	slices.Sort(pids) // the first is most often the one that the engine started
	for _, pid := range pids {
		if name.Manager == Slurm {
			if job, _, ok := s.stepd(pid); ok {
				return Key{Slurm, job, 1}
			}
			continue
		}
		data, err := hostfs.Read(s.root.Pid(pid, "environ"))
		id, ok := ParseTask(data)
		if err != nil || !ok || s.trust == TrustNone {
			continue
		}
		key := Key{Nomad, id, 1}
		for _, other := range s.aliases {
			// A task has one container: one that names another's task is not believed.
			if other != a && other.key == key && other.seen+1 >= s.round {
				return Key{}
			}
		}
		return key
	}
	return Key{}
}
