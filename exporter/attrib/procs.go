package attrib

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"math"
	"slices"

	"pitchpipe/exporter/hostfs"
)

// What a process is changes with exec, which follows soon after the fork or never,
// so "no job" is believed after this many scans.
const settleScans = 12

// due reports whether a process that was first seen so many scans ago is to be looked at:
// most become what they are at once, and each look reads some files.
func due(age int) bool {
	return slices.Contains([]int{0, 1, 2, 4, 7, settleScans - 1}, age)
}

// Ancestors are followed this far; nothing nests deeper in practice.
const maxAncestors = 64

// numbered is a process as /proc lists it. The inode is that of its directory: the
// kernel makes one for each process and does not reuse the number soon, so an equal one is an
// equal process, and a different one may be.
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
	daemon    string // the step whose daemon it is; empty = it is none
	uid       uint32
	age       int // scans, up to settleScans
	round     uint64
}

// scan looks at all processes and returns the jobs without a cgroup that they belong to: those
// below a step daemon of Slurm, and those whose environment names a job. Each process is read a
// few times in its life; a scan only lists them, and a thorough one looks again at those that
// seem to be the same.
func (s *Scanner) scan(ctx context.Context) map[Key]*Found {
	jobs := map[Key]*Found{}
	s.enumerate()
	for _, n := range s.alive {
		if ctx.Err() != nil {
			return jobs
		}
		s.meet(jobs, n)
	}
	if len(s.known) > len(s.alive) {
		maps.DeleteFunc(s.known, func(_ int, p *process) bool { return p.round != s.round })
	}
	maps.DeleteFunc(s.owners, func(key Key, _ uint32) bool { return jobs[key] == nil })
	return jobs
}

// enumerate lists the processes. If it fails, as without a free descriptor, they are those of
// the last scan.
func (s *Scanner) enumerate() {
	was := len(s.alive)
	err := s.list.each(s.root.Proc(), func(name []byte, _ byte, inode uint64) {
		if pid, ok := number(name); ok {
			s.alive = append(s.alive, numbered{pid, inode})
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.alive = s.alive[:was]
		return
	}
	s.alive = append(s.alive[:0], s.alive[was:]...)
	// Parents mostly before their children.
	slices.SortFunc(s.alive, func(a, b numbered) int { return cmp.Compare(a.pid, b.pid) })
}

// meet looks at one process as far as that is due, and enters it into its job.
func (s *Scanner) meet(jobs map[Key]*Found, n numbered) {
	p := s.known[n.pid]
	if p == nil {
		p = &process{inode: n.inode}
		s.known[n.pid] = p
	}
	p.round = s.round
	if p.inode != n.inode || s.all && p.isJob {
		// Another process under the same number begins from 0.
		if _, start, ok := s.descent(n.pid); ok {
			if start != p.start {
				*p = process{round: s.round}
			}
			p.inode = n.inode
		}
	}
	if p.age < settleScans {
		switch {
		case !due(p.age):
		case !p.isJob:
			s.look(n.pid, p)
		case p.confirmed && p.uid == 0:
			// A daemon's child is root's until it becomes the job's user.
			p.uid, _ = s.ownerOf(s.root.Pid(n.pid)) // gone: root's for ever
		}
		p.age++
	}
	s.enter(jobs, n.pid, p)
}

func (s *Scanner) enter(jobs map[Key]*Found, pid int, p *process) {
	if !p.isJob {
		return
	}
	if !p.confirmed {
		if owner, seen := s.owners[p.key]; seen && owner != p.uid {
			return
		}
		s.owners[p.key] = p.uid
	}
	f := jobs[p.key]
	if f == nil {
		f = &Found{Key: p.key, Confirmed: p.confirmed}
		jobs[p.key] = f
	}
	// Besides the job's processes there are root's, such as its daemon.
	if !f.HasUID && (p.uid != 0 || !p.confirmed) {
		f.UID, f.HasUID = p.uid, true
	}
	f.Pids = append(f.Pids, pid)
	if p.daemon == stepBatch {
		// Each start of the job has its own. It distinguishes a start from the one
		// before if no scan was in between, or if a process of that still lives.
		f.born(bornBatch, max(p.start, f.Birth[bornBatch]))
	}
	if p.step == stepBatch {
		f.batch = append(f.batch, pid)
	}
}

// look finds the job of one process: it is a step daemon, or a child of a job's process, or its
// environment names one. A process in a job's cgroup is left to that.
func (s *Scanner) look(pid int, p *process) {
	uid, ok := s.ownerOf(s.root.Pid(pid))
	if !ok {
		return
	}
	parent, start, ok := s.descent(pid)
	if !ok {
		return
	}
	above := s.known[parent]
	p.start = start
	found := *p
	found.uid = uid
	job, step, ok := s.stepd(pid)
	key := Key{Slurm, job, 1}
	fork := above != nil && above.isJob && above.key == key && above.daemon == step // of the daemon, until it executes the job
	if ok && !fork {
		found.key, found.confirmed, found.daemon = key, true, step
	} else if above != nil && above.isJob && above.confirmed {
		found.key, found.confirmed, found.step = above.key, true, cmp.Or(above.step, above.daemon)
	} else if key, ok := s.named(pid, uid); ok {
		found.key = key
	} else if above != nil && above.isJob && above.uid == uid {
		found.key = above.key
	} else {
		return
	}
	members, err := s.root.Memberships(pid)
	if err != nil {
		return
	}
	if _, ok := s.byCgroup(members); ok {
		return
	}
	found.isJob = true
	*p = found
}

// descent reads a process's parent and when it began, in ticks after boot; 0 = unknown.
func (s *Scanner) descent(pid int) (parent int, start uint64, ok bool) {
	data, err := s.buf.Read(s.root.Pid(pid, "stat"))
	if err != nil {
		return 0, 0, false
	}
	f, last := hostfs.ParseProcStat(data)
	if last < 4 || f[4] > math.MaxInt32 {
		return 0, 0, false
	}
	return int(f[4]), f[22], true
}

// ownWord returns the Slurm job that a process names in its environment, if processes
// of the same user are in it below a step daemon. A listener that the task prolog
// started is such a process: it has left its daemon, and where Slurm makes no cgroups
// nothing else ties it to the job. It speaks only for a job of its own user.
func (s *Scanner) ownWord(pid int, uid uint32) (Key, bool) {
	data, err := hostfs.Read(s.root.Pid(pid, "environ"))
	if err != nil || uid == 0 || s.trust == TrustNone {
		return Key{}, false
	}
	job := hostfs.Env(data, "SLURM_JOB_ID")["SLURM_JOB_ID"]
	for _, p := range s.known {
		if p.isJob && p.confirmed && p.uid == uid && p.key.Manager == Slurm && p.key.ID == job {
			return p.key, true
		}
	}
	return Key{}, false
}

// locate returns the job of a process that is in no job's cgroup: by the step daemon
// among its ancestors, else by its environment if uid owns the job that it names.
// confirmed distinguishes the former from the latter.
func (s *Scanner) locate(pid int, uid uint32) (key Key, confirmed, ok bool) {
	at := pid
	for range maxAncestors {
		parent, start, ok := s.descent(at)
		if !ok {
			break
		}
		if p := s.known[at]; p != nil && p.isJob && p.confirmed && p.start == start {
			return p.key, true, true
		}
		if job, _, ok := s.stepd(at); ok {
			return Key{Slurm, job, 1}, true, true
		}
		if at = parent; at <= 1 {
			break
		}
	}
	if key, ok := s.ownWord(pid, uid); ok {
		return key, true, true
	}
	key, ok = s.named(pid, uid)
	if p := s.known[pid]; !ok && p != nil && p.isJob && !p.confirmed {
		if _, start, alive := s.descent(pid); alive && start == p.start {
			key, ok = p.key, true
		}
	}
	owner, seen := s.owners[key]
	return key, false, ok && seen && owner == uid
}
