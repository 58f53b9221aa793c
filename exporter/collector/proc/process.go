package proc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

type process struct {
	stat     stat
	io       counts
	threads  map[int]counts // their switches
	finished counts         // those of threads that are gone
	anon     uint64         // bytes of memory that it has for itself, or shares since a fork
	shared   uint64         // bytes of memory that others may map too
	fatal    uint64         // signals that end it, bit n-1 for signal n; 0 = unknown
	seen     bool
	partly   bool // the last reading of it was incomplete
	path     string

	waited  uint64   // ticks of children that it waited for since the reading before
	waiting []counts // of children that ended and that it has not waited for yet
}

// readStat reads a process's stat, and reports whether nothing in it changed.
func (r *reader) readStat(pid int) (p *process, slept bool, err error) {
	p = r.alive[pid]
	var path string
	if p != nil {
		path = p.path
	} else {
		path = r.root.Pid(pid)
	}
	data, err := r.buf.Read(path + "/stat")
	if err != nil {
		return nil, false, err
	}
	s, err := parseStat(data)
	if err != nil {
		return nil, false, fmt.Errorf("pid %d: %w", pid, err)
	}
	if p != nil && p.stat.startTicks != s.startTicks {
		r.retire(p) // another process under the same id
		p = nil
	}
	if p == nil {
		p = &process{path: path, stat: stat{children: s.children}}
		r.alive[pid] = p
	}
	p.wait(s.children.ticks())
	slept = p.stat == s
	p.stat, p.seen = s, true
	return p, slept, nil
}

func (r *reader) readIO(p *process) error {
	data, err := r.buf.Read(p.path + "/io")
	if err != nil {
		return err
	}
	io, err := parseIO(data)
	if err == nil {
		p.io = io
	}
	return err
}

func (r *reader) readThreads(pid int, p *process) error {
	names := []string{strconv.Itoa(pid)} // the main thread, most often the only one
	if p.stat.threads != 1 {
		dir, err := os.Open(p.path + "/task")
		if err != nil {
			return err
		}
		names, err = dir.Readdirnames(-1)
		_ = dir.Close() // only read
		if err != nil {
			return err
		}
	}
	now := make(map[int]counts, len(names))
	for _, name := range names {
		data, err := r.buf.Read(p.path + "/task/" + name + "/status")
		if err := ignoreGone(err); err != nil {
			return err
		}
		tid, failed := strconv.Atoi(name)
		if err != nil || failed != nil {
			continue
		}
		if now[tid], err = parseSwitches(data); err != nil {
			return err
		}
		if tid == pid {
			p.anon, p.shared, p.fatal = kibibytes(data, "\nRssAnon:"), kibibytes(data, "\nRssShmem:"), fatal(data)
		}
	}
	for tid, was := range p.threads {
		// A smaller count under the same number is another thread.
		is, ok := now[tid]
		if !ok || is[voluntary] < was[voluntary] || is[involuntary] < was[involuntary] {
			p.finished = p.finished.plus(was)
		}
	}
	p.threads = now
	return nil
}

func (p *process) switches() counts {
	s := p.finished
	for _, t := range p.threads {
		s = s.plus(t)
	}
	return s
}

// bury moves what the processes that are gone had counted to the totals, or leaves it
// to the parent that waited for them.
func (r *reader) bury() {
	for pid, p := range r.alive {
		if p.seen {
			continue
		}
		if parent := r.alive[p.stat.parent]; parent != nil && parent.seen {
			p.io = counts{} // the kernel added it to the parent that waited
			parent.heir(p.use())
			p.stat.own, p.stat.children, p.waiting = counts{}, counts{}, nil
		}
		r.retire(p)
		delete(r.alive, pid)
	}
}

func (r *reader) retire(p *process) { r.gone = r.gone.plus(p.total()) }

// use is what a process and those that it answers for took: the children that it waited for,
// and those that it has yet to wait for.
func (p *process) use() counts {
	u := p.stat.own.plus(p.stat.children)
	for _, w := range p.waiting {
		u = u.plus(w)
	}
	return u
}

func (p *process) total() counts { return p.use().plus(p.io).plus(p.switches()) }

// wait notes that the kernel's count of the children is now so many ticks, and drops the
// children that it includes.
func (p *process) wait(children uint64) {
	p.waited = children - min(p.stat.children.ticks(), children)
	p.waiting = slices.DeleteFunc(p.waiting, p.covers)
}

// heir takes over what a child took that has ended. A parent that ignores its children never
// waits, and the kernel drops what they took.
func (p *process) heir(u counts) {
	if !p.covers(u) {
		p.waiting = append(p.waiting, u)
	}
}

// covers reports whether what was waited for has room for a child, and takes that room.
// The kernel rounds the sum and not each of its parts, so two ticks may be missing.
func (p *process) covers(u counts) bool {
	if p.waited+2 < u.ticks() || p.waited == 0 && u.ticks() > 0 {
		return false
	}
	p.waited -= min(p.waited, u.ticks())
	return true
}
