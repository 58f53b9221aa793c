package attrib

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/hostfs"
)

// Found is a job that is on the node now.
type Found struct {
	Key    Key
	UID    uint32
	HasUID bool
	Dirs   map[string]string // its cgroup by the hierarchy's name; nil = it has none
	Pids   []int             // its processes, where it has no cgroup

	// Confirmed means that a cgroup or a step daemon named the job, and not only
	// what a user wrote into an environment.
	Confirmed bool
	// Birth distinguishes the cgroups of one start of a job of Slurm or Nomad from those of
	// the next, by hierarchy; without a cgroup, the daemon of the batch step. Slurm's that have
	// gone since stay in it: the next start may begin before the last of this one has gone.
	Birth map[string]uint64
	// Attempt is what Slurm says about how often the job was started, from 1; 0 =
	// not known (yet). For others Key has the attempt.
	Attempt int

	batch []int // processes of Slurm's batch step, where it has no cgroup
	// passer recognises a process that is in the cgroup for a moment and is not the job's; nil
	// = there are none.
	passer func(pid int) bool
}

// Reborn reports whether f's cgroups were made anew since was found.
func (f Found) Reborn(was Found) bool { return reborn(was.Birth, f.Birth) }

// Renewed reports whether the next scan may find another start of the job: one of its cgroups
// is now another one of its name, or had gone. It looks at the directories alone.
func (f Found) Renewed() bool {
	for name, was := range f.Birth {
		dir, there := f.Dirs[name]
		if !there && name != bornBatch {
			return true
		}
		if now, ok := birth(dir); ok && now != was {
			return true
		}
	}
	return false
}

// Scanner finds the jobs of the node.
type Scanner struct {
	root  hostfs.Root
	procs *procs

	hierarchies []hostfs.Hierarchy // of the last thorough scan
	bases       []base             // where jobs are looked for in them
	dirs        map[string]Key     // cgroup directory → job, of the last scan
	round       uint64             // scans so far
	all         bool               // the scan is thorough
	list        listing

	containerDirs []containerDir        // containers that this scan saw
	containers    map[string]*container // by their ids
	contained     map[Key]uint64        // tasks that live in one, and the scan that last saw them

	sluids       map[string]string // Slurm's newer names → job numbers
	waits        map[string]int    // scans in which a name's number was looked for in vain
	waiting      map[string]bool   // names that the scan saw
	incarnations map[Key]*incarnation
}

// thorough is that each so many scans takes nothing for granted: which hierarchies there
// are, where the exporter itself is, and that a number still means the same process.
const thorough = 20

// NewScanner reads below root. Nothing is read before the first call. trust says
// whose environments may name a job.
func NewScanner(root hostfs.Root, trust Trust) *Scanner {
	s := &Scanner{root: root, dirs: map[string]Key{}, containers: map[string]*container{}, contained: map[Key]uint64{}, sluids: map[string]string{}, waits: map[string]int{}, waiting: map[string]bool{}, incarnations: map[Key]*incarnation{}}
	s.procs = newProcs(root, s.byCgroup)
	s.procs.trust = trust
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
	return []api.Source{cgroups, s.stepdSource(), s.environSource()}
}

// stepdSource answers for the step daemons of Slurm: only who may trace processes
// may see what they run.
func (s *Scanner) stepdSource() api.Source {
	if !mayTrace() {
		return api.Source{Name: "attrib/slurmstepd", Support: api.Denied, Reason: "Slurm jobs without a cgroup are not seen: needs root or CAP_SYS_PTRACE"}
	}
	return api.Source{Name: "attrib/slurmstepd", Support: api.Supported, Reason: "ancestry"}
}

// mayTrace reports whether the exporter has CAP_SYS_PTRACE.
func mayTrace() bool { return hostfs.Root{}.Capabilities()&(1<<unix.CAP_SYS_PTRACE) != 0 }

func (s *Scanner) environSource() api.Source {
	src := api.Source{Name: "attrib/environ", Support: api.Supported}
	_, err := hostfs.Read(s.root.Pid(s.root.Self(), "environ"))
	switch {
	case s.procs.trust == TrustNone:
		src.Support, src.Reason = api.Unsupported, "turned off"
	case err != nil:
		src.Support, src.Reason = api.Unsupported, err.Error()
	case s.procs.trust == TrustOwn:
		src.Reason = "processes of the exporter's own user"
	case os.Geteuid() != 0:
		src.Reason = "own processes only: others need CAP_SYS_PTRACE"
	default:
		src.Reason = "processes of all users, who are believed"
	}
	return src
}

// Scan lists the jobs of the node, in the order of their keys.
func (s *Scanner) Scan(ctx context.Context) []Found {
	jobs := map[Key]*Found{}
	clear(s.dirs)
	s.all = s.round%thorough == 0
	s.round++
	if s.all || len(s.bases) == 0 {
		s.orient()
	}
	for _, b := range s.bases {
		if ctx.Err() != nil {
			break
		}
		s.walk(jobs, b, b.dir)
	}
	s.assignContainers(jobs)
	for key, f := range s.procs.scan(ctx, s.all) {
		if jobs[key] == nil {
			jobs[key] = f
		}
	}
	out := make([]Found, 0, len(jobs))
	for _, f := range jobs {
		if f.Key.Manager == Slurm {
			s.restarts(f)
		}
		out = append(out, *f)
	}
	s.forget(ctx, jobs)
	slices.SortFunc(out, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Key.Manager, b.Key.Manager), cmp.Compare(a.Key.ID, b.Key.ID), a.Key.Attempt-b.Key.Attempt)
	})
	return out
}

// orient finds the hierarchies, and where in them jobs may begin: at the root, and for
// local jobs below the exporter's own ancestors too.
func (s *Scanner) orient() {
	self, err := s.root.Memberships(s.root.Self())
	if err != nil {
		self = nil // a generated tree: only the roots are looked at
	}
	known := map[string]*dirCache{}
	for _, b := range s.bases {
		known[b.dir.dir] = b.dir
	}
	s.hierarchies, s.bases = s.root.Hierarchies(), s.bases[:0]
	for _, h := range s.hierarchies {
		owner, owned := s.procs.owner.of(h.Dir)
		from := func(rel string) {
			at := known[filepath.Join(h.Dir, rel)]
			if at == nil {
				at = &dirCache{path: rel, dir: filepath.Join(h.Dir, rel), kind: leading}
			}
			s.bases = append(s.bases, base{h, at, owner, owned})
		}
		from("")
		for _, m := range self {
			if !m.In(h) {
				continue
			}
			for dir := m.Path; dir != "/" && dir != "."; dir = path.Dir(dir) {
				from(path.Join(dir, "pitchpipe"))
			}
		}
	}
}

// forget drops what was remembered of Slurm jobs that are gone.
func (s *Scanner) forget(ctx context.Context, jobs map[Key]*Found) {
	if ctx.Err() != nil {
		return // the scan was cut short: what is missing need not be gone
	}
	maps.DeleteFunc(s.containers, func(_ string, b *container) bool { return b.seen != s.round })
	maps.DeleteFunc(s.contained, func(_ Key, round uint64) bool { return round != s.round })
	maps.DeleteFunc(s.incarnations, func(k Key, _ *incarnation) bool { return jobs[k] == nil })
	maps.DeleteFunc(s.sluids, func(_, id string) bool { return jobs[Key{Slurm, id, 1}] == nil })
	maps.DeleteFunc(s.waits, func(name string, _ int) bool { return !s.waiting[name] })
	clear(s.waiting)
}

// Locate reports which job of the last scan a process is in: by its cgroup, else by
// the step daemon of Slurm among its ancestors, else by its environment. uid is the
// user that the kernel named for the process; it has to own a job that only the
// environment names. A job that has a cgroup is not named by an environment:
// every user can write one.
func (s *Scanner) Locate(pid int, uid uint32) (Key, bool) {
	if members, err := s.root.Memberships(pid); err == nil {
		if key, ok := s.byCgroup(members); ok {
			return key, true
		}
	}
	key, confirmed, ok := s.procs.locate(pid, uid)
	if !ok || !confirmed && s.hasCgroup(key) {
		return Key{}, false
	}
	return key, true
}

// Started returns when a process began, in ticks after boot; 0 = there is none.
func (s *Scanner) Started(pid int) uint64 {
	d, _ := s.procs.descent(pid)
	return d.start
}

// hasCgroup reports whether the last scan found a cgroup of the job.
func (s *Scanner) hasCgroup(key Key) bool {
	for _, owner := range s.dirs {
		if owner == key {
			return true
		}
	}
	return false
}

// byCgroup reports which job of the last scan owns one of the cgroups. A path that
// merely looks like a job's is not enough: its directory has to be one that the
// scan found.
func (s *Scanner) byCgroup(members []hostfs.Membership) (Key, bool) {
	for _, m := range members {
		if key, ok := s.containerOf(m); ok {
			return key, true
		}
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

// User reports whose processes these are: the first user among them who is not root,
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
