package sampler

import (
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/window"
)

// restarted reports whether f is a later start of a job that keeps its id: the
// scheduler counts another one, or the cgroups were made again.
func (j *job) restarted(f scanned) bool {
	return f.Reborn(j.found) || j.counted && f.Attempt > 0 && f.Attempt != j.stored.Attempt
}

// number takes over the attempt's number when the scheduler's own becomes known.
func (s *Sampler) number(j *job, f attrib.Found) {
	if j.counted || f.Attempt == 0 {
		return
	}
	j.counted = true
	if f.Attempt == j.stored.Attempt {
		return
	}
	to := j.stored
	to.Attempt = f.Attempt
	was, earlier := s.store.Attempt(to)
	if !s.store.Renumber(j.stored, f.Attempt) {
		s.log.Warn("attempt keeps its own number", "job", j.stored.String(), "attempt", f.Attempt)
		return
	}
	s.log.Info("attempt number known from the job", "job", j.stored.String(), "attempt", f.Attempt)
	j.stored = to
	if earlier {
		s.goOn(j, was)
	}
}

// goOn lets a job go on with what the same attempt has used before: Nomad restarted the task in
// its allocation, or the cgroups of a Slurm job were gone between two of its steps. The
// samples begin again.
func (s *Sampler) goOn(j *job, was window.Attempt) {
	j.was, j.joules = was, j.joules.Plus(was.Joules)
	if t, r := s.ended[j.stored], j.reports; t != nil { // its output goes on too
		r.epochs, r.saves, r.before = max(r.epochs, t.epochs), max(r.saves, t.saves), max(t.epoch, t.before)
	}
}

// claimed reports whether f is only a claim to the job: an environment names it, but
// the job has a cgroup or is another user's.
func (j *job) claimed(f attrib.Found) bool {
	return !f.Confirmed && len(f.Dirs) == 0 && (len(j.found.Dirs) > 0 || j.found.Confirmed || f.UID != j.uid)
}

// usurped reports whether j was found by the environment of another user than the
// user whose cgroup has come now. Where that is still empty, it counts as usurped.
func (j *job) usurped(f scanned) bool {
	if len(j.found.Dirs) > 0 || j.found.Confirmed || len(f.Dirs) == 0 {
		return false
	}
	return !f.HasUID || f.UID != j.uid
}

// replacesEnded reports whether f, which only an environment names, would replace an attempt
// that ended and that had a cgroup or was another user's.
func (s *Sampler) replacesEnded(f attrib.Found) bool {
	if len(f.Dirs) > 0 || f.Confirmed {
		return false
	}
	_, found := s.store.Find(f.Key.Manager+"/"+f.Key.ID, f.Key.Attempt, func(j api.Job) bool {
		return j.Ended && (j.Cgroup != "" || j.UID != f.UID)
	})
	return found
}

// restore puts the jobs that ended back into the store and keeps what the others
// had for when they are seen again; those of another boot are gone.
func (s *Sampler) restore(saved State) {
	for _, j := range saved.Jobs {
		switch {
		case !j.Ended.IsZero():
			_ = s.store.Restore(j) // as many as there is room for
		case j.Inode != 0 && saved.Boot == s.cfg.Boot:
			s.earlier[inodeFor(j.Job.Cgroup, j.Inode, j.Job.Manager, j.Job.ID)] = j
		}
	}
}

// inode names a cgroup for as long as it lives, and a job without one for as long as its oldest process does.
type inode struct {
	dir    string     // empty: it has none
	number uint64     // else when that process began
	job    attrib.Key // then, without its attempt
}

func inodeFor(dir string, number uint64, manager, id string) inode {
	if dir != "" {
		return inode{dir: dir, number: number}
	}
	return inode{number: number, job: attrib.Key{Manager: manager, ID: id}}
}

// inodeOf is that of a cgroup; the zero value = unknown.
func (s *Sampler) inodeOf(dir string) inode {
	found, _ := collector.Get(s.worker(finding), func() (inode, error) {
		var st unix.Stat_t
		if err := unix.Stat(dir, &st); err != nil {
			return inode{}, err
		}
		return inode{dir: dir, number: st.Ino}, nil
	})
	return found
}

// eldest is the oldest process of a job without a cgroup, and what the job is known again by; zero values = unknown.
func (s *Sampler) eldest(f attrib.Found) (eldest int, in inode) {
	in, _ = collector.Get(s.worker(finding), func() (in inode, _ error) {
		for _, pid := range f.Pids {
			if began := s.finder.Started(pid); began > 0 && (in.number == 0 || began < in.number) {
				eldest, in = pid, inodeFor("", began, f.Key.Manager, f.Key.ID)
			}
		}
		return in, nil
	})
	return eldest, in
}

// counted reports by what an earlier exporter knew a job that ran when it ended: one of its cgroups, or its oldest process.
func (s *Sampler) counted(f attrib.Found) (in inode, ok bool) {
	if len(f.Dirs) == 0 {
		_, in = s.eldest(f)
		_, ok = s.earlier[in]
		return in, ok
	}
	for in, was := range s.earlier {
		if was.Job.Manager == f.Key.Manager && was.Job.ID == f.Key.ID && slices.Contains(slices.Collect(maps.Values(f.Dirs)), in.dir) && s.inodeOf(in.dir) == in {
			return in, true
		}
	}
	return s.inodeOf(firstDir(f)), false
}

// unwatched is how long no exporter may have run for a job's joules to go on. A restart takes
// seconds, which they lack.
const unwatched = time.Minute

// resume gives a job the joules that an earlier exporter counted for it, and reports
// whether there were any. It does not forget them.
func (s *Sampler) resume(j *job) (ok bool) {
	if j.inode, ok = s.counted(j.found); !ok {
		return false
	}
	was := s.earlier[j.inode]
	j.was, j.joules = was, was.Joules
	if last := s.cfg.Earlier.At; !last.IsZero() && time.Since(last) > unwatched {
		j.joules.Lacks, j.joules.GPULacks = true, j.joules.GPULacks || j.joules.GPU > 0
	}
	j.reports.saves = was.Job.Saves // a reader that starts again repeats them
	if !j.counted && was.Job.Attempt > 0 && j.stored.Manager != attrib.Local {
		j.stored.Attempt = was.Job.Attempt
	}
	return true
}

// forgotten is how long after its begin the sampler passes on what an earlier exporter
// knew of jobs that it has not found: it may be ended, too, before it finds them.
const forgotten = 15 * time.Minute

// state returns what the next exporter must know.
func (s *Sampler) state(at time.Time, latest []window.Latest) State {
	out := State{Boot: s.cfg.Boot, At: at, Jobs: make([]window.Attempt, 0, len(latest))}
	for _, l := range latest {
		if l.Job.Ended {
			l.Attempt.Values = s.store.Named(l)
		} else if l.Inode == 0 {
			continue // nothing to know it again by
		}
		out.Jobs = append(out.Jobs, l.Attempt)
	}
	if at.Sub(s.began) < forgotten {
		out.Jobs = slices.AppendSeq(out.Jobs, maps.Values(s.earlier)) // which were not found yet
	}
	return out
}

// writeJournal keeps what is about to be shown, before it is shown.
func (s *Sampler) writeJournal(now State) {
	if s.cfg.Journal == nil || !s.cfg.Keep {
		return
	}
	_, err := collector.Get(s.worker("journal"), func() (any, error) { return nil, s.cfg.Journal(now) })
	if errors.Is(err, collector.ErrSilent) {
		return // it is shown as a source that does not answer
	}
	s.unkept.set(s.log, err, "the journal of jobs' joules")
}
