package attrib

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"syscall"

	"pitchpipe/exporter/hostfs"
)

// What a process is changes with exec, which follows soon after the fork or never,
// so that "no job" is believed after this many scans.
const settleScans = 12

// Ancestors are followed this far; nothing nests deeper in earnest.
const maxAncestors = 64

// procs remembers which processes belong to a job without a cgroup: those below a
// step daemon of Slurm, and those whose environment names a job. Each process is
// read a few times in its life and not with each scan.
type procs struct {
	root   hostfs.Root
	owner  identity
	stepds stepds
	trust  Trust
	self   uint32
	cgroup func([]hostfs.Membership) (Key, bool) // the job whose cgroup it is
	known  map[int]*process
	owners map[Key]uint32 // who was first seen in a job that environments name
}

type process struct {
	start     uint64 // tells it from another under the same number
	key       Key
	isJob     bool
	confirmed bool   // a step daemon is among its ancestors
	step      string // of Slurm; empty for the daemon itself
	uid       uint32
	looks     int
}

func newProcs(root hostfs.Root, cgroup func([]hostfs.Membership) (Key, bool)) *procs {
	return &procs{
		root: root, owner: fileOwner, stepds: stepds{root, fileOwner}, self: uint32(os.Geteuid()), cgroup: cgroup,
		known: map[int]*process{}, owners: map[Key]uint32{},
	}
}

// fileOwner is the identity of the machine; links are followed.
func fileOwner(path string) (uint32, bool) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, false
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return sys.Uid, true
}

// scan looks at all processes and returns the jobs that they belong to.
func (e *procs) scan(ctx context.Context) map[Key]*Found {
	jobs := map[Key]*Found{}
	dir, err := os.Open(e.root.Proc())
	if err != nil {
		return jobs
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close() // only read
	if err != nil {
		return jobs
	}
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids) // parents mostly before their children
	for _, pid := range pids {
		if ctx.Err() != nil {
			return jobs
		}
		p := e.known[pid]
		if p == nil {
			p = &process{}
			e.known[pid] = p
		}
		if p.isJob {
			// Another process under the same number begins anew.
			if _, start, ok := e.descent(pid); ok && start != p.start {
				*p = process{}
			}
			// A daemon's child is root's until it becomes the job's user.
			if p.confirmed && p.uid == 0 && p.looks < settleScans {
				p.looks++
				p.uid, _ = e.owner(e.root.Pid(pid)) // gone: root's for ever
			}
		}
		if !p.isJob && p.looks < settleScans {
			p.looks++
			e.look(pid, p)
		}
		e.enter(jobs, pid, p)
	}
	for pid := range e.known {
		if _, alive := slices.BinarySearch(pids, pid); !alive {
			delete(e.known, pid)
		}
	}
	for key := range e.owners {
		if jobs[key] == nil {
			delete(e.owners, key)
		}
	}
	return jobs
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
	if p.step == stepBatch {
		f.batch = append(f.batch, pid)
	}
}

// look reads one process: that it is a step daemon, or a child of a process of a
// job, or what its environment says. A process in a job's cgroup is left to that.
func (e *procs) look(pid int, p *process) {
	uid, ok := e.owner(e.root.Pid(pid))
	if !ok {
		return
	}
	parent, start, ok := e.descent(pid)
	if !ok {
		return
	}
	found := process{start: start, uid: uid, looks: p.looks}
	above := e.known[parent]
	if st, ok := e.stepds.is(pid); ok {
		found.key, found.confirmed = Key{Slurm, st.job, 1}, true
	} else if above != nil && above.isJob && above.confirmed {
		found.key, found.confirmed, found.step = above.key, true, above.step
		if found.step == "" {
			found.step = e.stepOf(parent)
		}
	} else if key, ok := e.named(pid, uid); ok {
		found.key = key
	} else if above != nil && above.isJob && above.uid == uid {
		found.key = above.key
	} else {
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

// descent reads a process's parent and start time.
func (e *procs) descent(pid int) (parent int, start uint64, ok bool) {
	data, err := hostfs.Read(e.root.Pid(pid, "stat"))
	if err != nil {
		return 0, 0, false
	}
	// The name may hold anything, so that counting begins after its end.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0, 0, false
	}
	const startField = 19 // the 22nd of all
	if len(fields) > startField {
		start, _ = strconv.ParseUint(string(fields[startField]), 10, 64) // 0 = not told
	}
	return parent, start, true
}

// ownWord tells the Slurm job that a process names in its environment, where processes
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

// locate tells the job of a process that is in no job's cgroup: by the step daemon
// among its ancestors, else by its environment if uid owns the job that it names.
// confirmed tells the former from the latter.
func (e *procs) locate(pid int, uid uint32) (key Key, confirmed, ok bool) {
	at := pid
	for range maxAncestors {
		parent, start, ok := e.descent(at)
		if !ok {
			break
		}
		if p := e.known[at]; p != nil && p.isJob && p.confirmed && p.start == start {
			return p.key, true, true
		}
		if st, ok := e.stepds.is(at); ok {
			return Key{Slurm, st.job, 1}, true, true
		}
		if parent <= 1 {
			break
		}
		at = parent
	}
	if key, ok := e.ownWord(pid, uid); ok {
		return key, true, true
	}
	key, ok = e.named(pid, uid)
	if p := e.known[pid]; !ok && p != nil && p.isJob && !p.confirmed {
		if _, start, alive := e.descent(pid); alive && start == p.start {
			key, ok = p.key, true
		}
	}
	if !ok {
		return Key{}, false, false
	}
	owner, seen := e.owners[key]
	return key, false, seen && owner == uid
}
