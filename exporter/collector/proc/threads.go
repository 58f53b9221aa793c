package proc

import (
	"os"
	"strconv"

	"pitchpipe/exporter/hostfs"
)

// thread is what was last seen of one.
type thread struct {
	turns    Turns
	switches Switches
}

// slept reports whether a process did not run since it was read, as none of an idle job
// did, and one of one thread by its own word: then
// nothing that it counts is another, and one small file stands for three. turns are to
// be kept with what is read after them.
func (r *reader) slept(pid int, idle bool) (turns Turns, yes bool) {
	p := r.alive[pid]
	if idle && p != nil && !p.partly {
		return Turns{}, p.parentSeen == (r.alive[p.stat.Parent] != nil)
	}
	path := ""
	switch {
	case r.unturned, p != nil && p.stat.Threads != 1:
		return Turns{}, false
	case p == nil:
		path = r.root.Pid(pid)
	default:
		path = p.path
	}
	data, err := hostfs.ReadInto(r.buf, path+"/schedstat")
	if err != nil {
		return Turns{}, false
	}
	r.buf = data
	turns, err = ParseTurns(data)
	if err != nil || turns.Times == 0 {
		r.unturned = err != nil
		return Turns{}, false
	}
	return turns, p != nil && turns == p.turns && p.parentSeen == (r.alive[p.stat.Parent] != nil)
}

func (r *reader) readThreads(pid int, p *process) error {
	was, now := p.threads, p.before
	clear(now)
	if p.stat.Threads == 1 { // the main thread, most often the only one
		if err := r.readThread(p.path+"/task/"+strconv.Itoa(pid), pid, was, now); err != nil {
			return err
		}
	} else {
		dir, err := os.Open(p.path + "/task")
		if err != nil {
			return err
		}
		names, err := dir.Readdirnames(-1)
		_ = dir.Close() // only read
		if err != nil {
			return err
		}
		for _, name := range names {
			tid, err := strconv.Atoi(name)
			if err != nil {
				continue
			}
			if err := r.readThread(p.path+"/task/"+name, tid, was, now); err != nil {
				return err
			}
		}
	}
	for tid, was := range was {
		// A smaller count under the same number is another thread.
		is, ok := now[tid]
		if !ok || is.switches.Voluntary < was.switches.Voluntary || is.switches.Involuntary < was.switches.Involuntary {
			p.finished.Voluntary += was.switches.Voluntary
			p.finished.Involuntary += was.switches.Involuntary
		}
	}
	p.threads, p.before = now, was
	return nil
}

// readThread reads one thread, unless it did not run since. One that has gone is no error.
func (r *reader) readThread(path string, tid int, was, now map[int]thread) error {
	var t thread
	if !r.unturned {
		if data, err := hostfs.ReadInto(r.buf, path+"/schedstat"); err == nil {
			r.buf = data
			if t.turns, err = ParseTurns(data); err != nil {
				t.turns = Turns{}
			}
		}
		if last, ok := was[tid]; ok && !r.all && t.turns.Times > 0 && last.turns == t.turns {
			now[tid] = last
			return nil
		}
	}
	data, err := hostfs.ReadInto(r.buf, path+"/status")
	if err != nil {
		return ignoreGone(err)
	}
	r.buf = data
	if t.switches, err = ParseSwitches(data); err != nil {
		return err
	}
	now[tid] = t
	return nil
}
