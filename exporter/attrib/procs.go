package attrib

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"pitchpipe/exporter/hostfs"
)

// What a process is changes with exec, which follows soon after the fork or never,
// so that "no job" is believed after this many scans.
const settleScans = 12

// due reports whether a process that was first seen so many scans ago is to be looked at:
// most become what they are at once, and each look reads some files.
func due(age int) bool {
	switch age {
	case 0, 1, 2, 4, 7, settleScans - 1:
		return true
	}
	return false
}

// Ancestors are followed this far; nothing nests deeper in earnest.
const maxAncestors = 64

// procs remembers which processes belong to a job without a cgroup: those below a
// step daemon of Slurm, and those whose environment names a job. Each process is
// read a few times in its life and not with each scan, which only lists them.
type procs struct {
	root   hostfs.Root
	owner  identity
	stepds stepds
	trust  Trust
	self   uint32
	cgroup func([]hostfs.Membership) (Key, bool) // the job whose cgroup it is
	known  map[int]*process
	owners map[Key]uint32 // who was first seen in a job that environments name

	list  listing
	alive []numbered   // of the last scan, used again
	count processCount // before those were listed
	buf   []byte
	round uint64
}

// numbered is a process as /proc lists it. The inode is that of its directory: the
// kernel makes one for each process and never uses the number again so soon, so that
// an equal one is an equal process, and another one may be.
type numbered struct {
	pid   int
	inode uint64
}

type process struct {
	inode     uint64
	start     uint64 // distinguishes it from another under the same number; 0 = not read yet
	key       Key
	isJob     bool
	confirmed bool   // a step daemon is among its ancestors
	step      string // of Slurm; empty for the daemon itself
	daemon    string // the step that it is the daemon of; empty = it is none
	uid       uint32
	age       int // scans, up to settleScans
	round     uint64

	image image  // that it ran when it was found to be of no job; the zero value = look again
	user  uint32 // whose it was then
}

func newProcs(root hostfs.Root, cgroup func([]hostfs.Membership) (Key, bool)) *procs {
	return &procs{
		root: root, stepds: stepds{root: root}, self: uint32(os.Geteuid()), cgroup: cgroup,
		known: map[int]*process{}, owners: map[Key]uint32{},
	}
}

// scan looks at all processes and returns the jobs that they belong to. all looks again
// at those that seem to be the same.
func (e *procs) scan(ctx context.Context, all bool) map[Key]*Found {
	jobs := map[Key]*Found{}
	e.round++
	if now := e.count.since(e.root, e.buf, all); now == (processCount{}) || now != e.count || now.threads < len(e.alive) || all {
		e.listed()
		e.count = now
	}
	for _, n := range e.alive {
		if ctx.Err() != nil {
			return jobs
		}
		e.meet(jobs, n, all)
	}
	if len(e.known) > len(e.alive) {
		maps.DeleteFunc(e.known, func(_ int, p *process) bool { return p.round != e.round })
	}
	for key := range e.owners {
		if jobs[key] == nil {
			delete(e.owners, key)
		}
	}
	return jobs
}

// listed reads which processes there are. Where that is unknown, as without a free
// descriptor, they are those of the last scan.
func (e *procs) listed() {
	was := len(e.alive)
	err := e.list.each(e.root.Proc(), func(name []byte, _ byte, inode uint64) {
		if pid, ok := number(name); ok {
			e.alive = append(e.alive, numbered{pid, inode})
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.alive = e.alive[:was]
		return
	}
	e.alive = append(e.alive[:0], e.alive[was:]...)
	// Parents mostly before their children.
	slices.SortFunc(e.alive, func(a, b numbered) int { return cmp.Compare(a.pid, b.pid) })
}

// meet looks at one process as far as that is due, and enters it into its job.
func (e *procs) meet(jobs map[Key]*Found, n numbered, all bool) {
	p := e.known[n.pid]
	if p == nil {
		p = &process{inode: n.inode}
		e.known[n.pid] = p
	}
	p.round = e.round
	if p.inode != n.inode || all && p.isJob {
		// Another process under the same number begins anew.
		if d, ok := e.descent(n.pid); ok {
			if d.start != p.start {
				*p = process{round: e.round}
			}
			p.inode = n.inode
		}
	}
	if p.age < settleScans {
		switch {
		case !due(p.age):
		case !p.isJob:
			e.look(n.pid, p, p.age == settleScans-1)
		case p.confirmed && p.uid == 0:
			// A daemon's child is root's until it becomes the job's user.
			p.uid, _ = e.owner.of(e.root.Pid(n.pid)) // gone: root's for ever
		}
		p.age++
	}
	e.enter(jobs, n.pid, p)
}

// enter puts a process down under its job.
func (e *procs) enter(jobs map[Key]*Found, pid int, p *process) {
	if !p.isJob {
		return
	}
	if !p.confirmed {
		if owner, seen := e.owners[p.key]; seen && owner != p.uid {
			return
		}
		e.owners[p.key] = p.uid
	}
	f := jobs[p.key]
	if f == nil {
		f = &Found{Key: p.key, Confirmed: p.confirmed}
		jobs[p.key] = f
	}
	// Beside the job's processes there are root's, its daemon for one.
	if !f.HasUID && (p.uid != 0 || !p.confirmed) {
		f.UID, f.HasUID = p.uid, true
	}
	f.Pids = append(f.Pids, pid)
	if p.daemon == stepBatch {
		// Each start of the job has one of its own. It distinguishes a start from the one
		// before where no scan was in between, or where a process of that still lives.
		f.Birth = map[string]uint64{bornBatch: max(p.start, f.Birth[bornBatch])}
	}
	if p.step == stepBatch {
		f.batch = append(f.batch, pid)
	}
}

// look reads one process: that it is a step daemon, or a child of a process of a
// job, or what its environment says. A process in a job's cgroup is left to that. One
// that has run the same program for the same user since it was of no job still is, unless
// it is to be looked at wholly.
func (e *procs) look(pid int, p *process, wholly bool) {
	uid, ok := e.owner.of(e.root.Pid(pid))
	if !ok {
		return
	}
	d, ok := e.descent(pid)
	if !ok {
		return
	}
	above := e.known[d.parent]
	if same := d.image.known() && d.image == p.image && d.start == p.start && uid == p.user; same && !wholly && (above == nil || !above.isJob) {
		return
	}
	p.start, p.image = d.start, image{}
	found := *p
	found.uid = uid
	if st, ok := e.stepds.is(pid); ok {
		found.key, found.confirmed, found.daemon = Key{Slurm, st.job, 1}, true, st.name
	} else if above != nil && above.isJob && above.confirmed {
		found.key, found.confirmed, found.step = above.key, true, above.step
		if found.step == "" {
			found.step = e.stepOf(d.parent)
		}
	} else if key, ok := e.named(pid, uid); ok {
		found.key = key
	} else if above != nil && above.isJob && above.uid == uid {
		found.key = above.key
	} else {
		if !e.stepds.runs(pid) { // a daemon takes its title later
			p.image, p.user = d.image, uid
		}
		return
	}
	members, err := e.root.Memberships(pid)
	if err != nil {
		return
	}
	if _, ok := e.cgroup(members); ok {
		return
	}
	found.isJob = true
	*p = found
}

func (e *procs) stepOf(daemon int) string {
	st, _ := e.stepds.is(daemon) // gone meanwhile: no step
	return st.name
}

// ownWord returns the Slurm job that a process names in its environment, where processes
// of the same user are in it below a step daemon. A listener that the task prolog
// started is such a one: it has left its daemon, and where Slurm makes no cgroups
// nothing else ties it to the job. It speaks for a job of its own user alone.
func (e *procs) ownWord(pid int, uid uint32) (Key, bool) {
	data, err := hostfs.Read(e.root.Pid(pid, "environ"))
	if err != nil || uid == 0 || e.trust == TrustNone {
		return Key{}, false
	}
	job, _, _ := ParseRestarts(data)
	for _, p := range e.known {
		if p.isJob && p.confirmed && p.uid == uid && p.key.Manager == Slurm && p.key.ID == job {
			return p.key, true
		}
	}
	return Key{}, false
}

// locate returns the job of a process that is in no job's cgroup: by the step daemon
// among its ancestors, else by its environment if uid owns the job that it names.
// confirmed distinguishes the former from the latter.
func (e *procs) locate(pid int, uid uint32) (key Key, confirmed, ok bool) {
	at := pid
	for range maxAncestors {
		d, ok := e.descent(at)
		if !ok {
			break
		}
		if p := e.known[at]; p != nil && p.isJob && p.confirmed && p.start == d.start {
			return p.key, true, true
		}
		if st, ok := e.stepds.is(at); ok {
			return Key{Slurm, st.job, 1}, true, true
		}
		if d.parent <= 1 {
			break
		}
		at = d.parent
	}
	if key, ok := e.ownWord(pid, uid); ok {
		return key, true, true
	}
	key, ok = e.named(pid, uid)
	if p := e.known[pid]; !ok && p != nil && p.isJob && !p.confirmed {
		if d, alive := e.descent(pid); alive && d.start == p.start {
			key, ok = p.key, true
		}
	}
	if !ok {
		return Key{}, false, false
	}
	owner, seen := e.owners[key]
	return key, false, seen && owner == uid
}
