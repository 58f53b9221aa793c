package attrib

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"

	"pitchpipe/exporter/hostfs"
)

// The variables that name the job of a process.
const (
	EnvJob     = "PITCHPIPE_JOB_ID"
	EnvAttempt = "PITCHPIPE_ATTEMPT"
)

// A process's environment changes with exec, which follows soon after the fork or
// never, so that "no job" is believed after this many scans.
const settleScans = 12

// environs remembers what the environments of processes say, so that each is read
// a few times in its life and not with each scan.
type environs struct {
	root   hostfs.Root
	cgroup func([]hostfs.Membership) (Key, bool) // the job whose cgroup it is
	known  map[int]*process
	owners map[Key]uint32 // who was first seen in a job
}

type process struct {
	key   Key
	isJob bool
	uid   uint32
	looks int
}

func newEnvirons(root hostfs.Root, cgroup func([]hostfs.Membership) (Key, bool)) *environs {
	return &environs{root: root, cgroup: cgroup, known: map[int]*process{}, owners: map[Key]uint32{}}
}

// scan looks at all processes and returns the jobs that their environments name.
func (e *environs) scan(ctx context.Context) map[Key]*Found {
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
	alive := make(map[int]bool, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid <= 0 {
			continue
		}
		if ctx.Err() != nil {
			return jobs
		}
		alive[pid] = true
		p := e.known[pid]
		if p == nil {
			p = &process{}
			e.known[pid] = p
		}
		if !p.isJob && p.looks < settleScans {
			p.looks++
			e.look(pid, p)
		}
		if !p.isJob {
			continue
		}
		if owner, seen := e.owners[p.key]; seen && owner != p.uid {
			continue
		}
		e.owners[p.key] = p.uid
		f := jobs[p.key]
		if f == nil {
			f = &Found{Key: p.key, UID: p.uid, HasUID: true}
			jobs[p.key] = f
		}
		f.Pids = append(f.Pids, pid)
	}
	for pid := range e.known {
		if !alive[pid] {
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

// look reads one process: its own environment, or that a known process of a job
// is its parent. A process in a job's cgroup is left to the cgroup.
func (e *environs) look(pid int, p *process) {
	st, err := os.Stat(e.root.Pid(pid))
	if err != nil {
		return
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	key, found := e.environment(pid)
	if !found {
		parent := e.known[e.parent(pid)]
		if parent == nil || !parent.isJob || parent.uid != sys.Uid {
			return
		}
		key = parent.key
	}
	members, err := e.root.Memberships(pid)
	if err != nil {
		return
	}
	if _, ok := e.cgroup(members); ok {
		return
	}
	p.key, p.uid, p.isJob = key, sys.Uid, true
}

func (e *environs) environment(pid int) (Key, bool) {
	data, err := hostfs.Read(e.root.Pid(pid, "environ"))
	if err != nil {
		return Key{}, false
	}
	return ParseEnviron(data)
}

func (e *environs) parent(pid int) int {
	data, err := hostfs.Read(e.root.Pid(pid, "stat"))
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(data[bytes.LastIndexByte(data, ')')+1:], []byte{' '})
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 2 {
		return 0
	}
	ppid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return ppid
}

// locate tells the job that the process's environment names, if its user owns it.
func (e *environs) locate(pid int, uid uint32) (Key, bool) {
	key, ok := e.environment(pid)
	if p := e.known[pid]; !ok && p != nil && p.isJob {
		key, ok = p.key, true
	}
	if !ok {
		return Key{}, false
	}
	owner, seen := e.owners[key]
	return key, seen && owner == uid
}

// ParseEnviron reads the job's name off /proc/<pid>/environ. A missing attempt is
// the first.
func ParseEnviron(data []byte) (Key, bool) {
	key := Key{Manager: Local, Attempt: 1}
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		name, value, ok := strings.Cut(string(entry), "=")
		if !ok {
			continue
		}
		switch name {
		case EnvJob:
			key.ID = value
		case EnvAttempt:
			n, ok := attemptNumber(value)
			if !ok {
				return Key{}, false
			}
			key.Attempt = n
		}
	}
	if key.ID == "" || len(key.ID) > 200 || strings.ContainsAny(key.ID, "/\n") {
		return Key{}, false
	}
	return key, true
}
