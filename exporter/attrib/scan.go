package attrib

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
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
	Pids   []int             // its processes, if it has no cgroup

	// Confirmed means that a cgroup or a step daemon named the job, and not only
	// what a user wrote into an environment.
	Confirmed bool
	// Birth distinguishes the cgroups of one start of a job of Slurm or Nomad from those of
	// the next, by hierarchy; without a cgroup, the daemon of the batch step. Slurm's that have
	// gone since stay in it: the next start may begin before the last of this one has gone.
	Birth map[string]uint64
	// Attempt is what Slurm says about how often the job was started, from 1; 0 =
	// unknown (yet). For others Key has the attempt.
	Attempt int

	batch []int // processes of Slurm's batch step, if it has no cgroup
	// passer recognises a process that is in the cgroup for a moment and is not the job's; nil
	// = none.
	passer func(pid int) bool
}

func (f *Found) born(name string, number uint64) {
	if f.Birth == nil {
		f.Birth = map[string]uint64{}
	}
	f.Birth[name] = number
}

// Reborn reports whether f's cgroups were made again since was found.
func (f Found) Reborn(was Found) bool {
	for name, ino := range was.Birth {
		if now, ok := f.Birth[name]; ok && now != ino {
			return true
		}
	}
	return false
}

// Renewed reports whether the next scan may find another start of the job: one of its cgroups
// is now another one of its name, or had gone. It looks at the directories alone.
func (f Found) Renewed() bool {
	for name, was := range f.Birth {
		dir, there := f.Dirs[name]
		if !there && name != bornBatch {
			return true
		}
		var st unix.Stat_t
		if unix.Stat(dir, &st) == nil && st.Ino != was {
			return true
		}
	}
	return false
}

// Scanner finds the jobs of the node.
type Scanner struct {
	root  hostfs.Root
	owner func(path string, uid uint32) uint32 // of what the kernel says is uid's, so that tests need no root
	trust Trust
	self  uint32

	known  map[int]*process // that live
	owners map[Key]uint32   // the first user seen in a job that environments name
	alive  []numbered       // of the last scan, used again
	list   listing
	buf    hostfs.Buffer

	hierarchies []hostfs.Hierarchy // of the last thorough scan
	bases       []base             // where jobs are looked for in them
	dirs        map[string]Key     // cgroup directory → job, of the last scan
	round       uint64             // scans so far
	all         bool               // the scan is thorough

	aliases      map[string]*alias
	contained    map[Key]uint64 // tasks that live in a container, and the scan that last saw them
	incarnations map[Key]*incarnation
}

// Each thorough scan takes nothing for granted: which hierarchies there are, where the
// exporter itself is, and that a number still means the same process.
const thorough = 20

// NewScanner reads below root. Nothing is read before the first call. trust says
// whose environments may name a job.
func NewScanner(root hostfs.Root, trust Trust) *Scanner {
	return &Scanner{
		root: root, trust: trust, self: uint32(os.Geteuid()), owner: func(_ string, uid uint32) uint32 { return uid },
		known: map[int]*process{}, owners: map[Key]uint32{}, dirs: map[string]Key{},
		aliases: map[string]*alias{}, contained: map[Key]uint64{}, incarnations: map[Key]*incarnation{},
	}
}

// Sources says by what means jobs can be found here.
func (s *Scanner) Sources() []api.Source {
	var names []string
	for _, h := range s.root.Hierarchies() {
		names = append(names, h.Name)
	}
	slices.Sort(names)
	cgroups := api.Source{Name: "attrib/cgroup", Support: api.Supported, Reason: strings.Join(names, " ")}
	if len(names) == 0 {
		cgroups.Support, cgroups.Reason = api.Unsupported, "no cgroup hierarchy below "+s.root.Cgroup()
	}
	stepd := api.Source{Name: "attrib/slurmstepd", Support: api.Supported, Reason: "ancestry"}
	if (hostfs.Root{}).Capabilities()&(1<<unix.CAP_SYS_PTRACE) == 0 { // which shows what others' processes run
		stepd.Support, stepd.Reason = api.Denied, "Slurm jobs without a cgroup are not seen: needs root or CAP_SYS_PTRACE"
	}
	environ := api.Source{Name: "attrib/environ", Support: api.Supported}
	_, err := hostfs.Read(s.root.Pid(s.root.Self(), "environ"))
	switch {
	case s.trust == TrustNone:
		environ.Support, environ.Reason = api.Unsupported, "turned off"
	case err != nil:
		environ.Support, environ.Reason = api.Unsupported, err.Error()
	case s.trust == TrustOwn:
		environ.Reason = "processes of the exporter's own user"
	case os.Geteuid() != 0:
		environ.Reason = "own processes only: others need CAP_SYS_PTRACE"
	default:
		environ.Reason = "processes of all users, who are believed"
	}
	return []api.Source{cgroups, stepd, environ}
}

// Scan lists the jobs of the node, in the order of their keys. When ctx ends it has a part of them,
// and of their cgroups, and is the last.
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
	for key, f := range s.scan(ctx) {
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
	maps.DeleteFunc(s.aliases, func(_ string, a *alias) bool { return a.seen != s.round })
	maps.DeleteFunc(s.contained, func(_ Key, round uint64) bool { return round != s.round })
	maps.DeleteFunc(s.incarnations, func(k Key, _ *incarnation) bool { return jobs[k] == nil })
	slices.SortFunc(out, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Key.Manager, b.Key.Manager), cmp.Compare(a.Key.ID, b.Key.ID), a.Key.Attempt-b.Key.Attempt)
	})
	return out
}

// Locate reports which job of the last scan a process is in: by its cgroup, else by
// the step daemon of Slurm among its ancestors, else by its environment. uid is the
// user that the kernel named for the process; it has to own a job that only the
// environment names. An environment cannot name a job that has a cgroup:
// every user can write one.
func (s *Scanner) Locate(pid int, uid uint32) (Key, bool) {
	if members, err := s.root.Memberships(pid); err == nil {
		if key, ok := s.byCgroup(members); ok {
			return key, true
		}
	}
	key, confirmed, ok := s.locate(pid, uid)
	if ok && !confirmed {
		for _, owner := range s.dirs {
			ok = ok && owner != key
		}
	}
	return key, ok
}

// Started returns when a process began, in ticks after boot; 0 = none.
func (s *Scanner) Started(pid int) uint64 {
	_, start, _ := s.descent(pid)
	return start
}

// byCgroup reports which job of the last scan owns one of the cgroups. A path that
// merely looks like a job's is not enough: the scan has to have found its directory.
func (s *Scanner) byCgroup(members []procfs.Cgroup) (Key, bool) {
	for _, m := range members {
		owner, ok := ParsePath(m.Path)
		if !ok {
			continue
		}
		for _, h := range s.hierarchies {
			if key, ok := s.dirs[filepath.Join(h.Dir, owner.Base)]; ok && h.Lists(m) {
				return key, true
			}
		}
	}
	return Key{}, false
}

// User reports whose processes these are: the first user among them who is not root,
// since a supervisor may run as root with the job; ok is false if none lives.
func (s *Scanner) User(pids []int) (uid uint32, ok bool) {
	for _, pid := range pids {
		if owner, alive := s.ownerOf(s.root.Pid(pid)); alive {
			if uid, ok = owner, true; uid != 0 {
				break
			}
		}
	}
	return uid, ok
}
