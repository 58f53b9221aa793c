package sampler

import (
	"errors"
	"os"
	"syscall"
	"time"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/state"
	"pitchpipe/exporter/window"
)

// restore puts the jobs that ended back into the store and keeps what the others
// had for when they are seen again; those of another boot are gone.
func (s *Sampler) restore(saved state.State) {
	for _, j := range saved.Jobs {
		key := attrib.Key{Manager: j.Job.Manager, ID: j.Job.ID, Attempt: j.Job.Attempt}
		if j.Ended.IsZero() {
			if j.Inode != 0 && saved.Boot == s.cfg.Boot {
				s.earlier[inode{j.Job.Cgroup, j.Inode}] = j
			}
			continue
		}
		job := j.Job
		job.Ended = false
		if err := s.store.Begin(key, job, j.Schema, j.Source); err != nil {
			continue // as many as there is room for
		}
		s.store.AllowAll(key, j.Budgets)
		s.store.End(key, j.Ended, j.Values)
		s.ended[key] = j.Joules
	}
}

// inode names a cgroup for as long as it lives.
type inode struct {
	dir    string
	number uint64
}

func inodeOf(dir string) inode {
	st, err := os.Stat(dir)
	if err != nil {
		return inode{}
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{dir, sys.Ino}
}

// counted is what an earlier exporter counted for a job in that cgroup that ran when it ended.
func (s *Sampler) counted(in inode, key attrib.Key) (was state.Job, ok bool) {
	was, ok = s.earlier[in]
	return was, ok && was.Job.Manager == key.Manager && was.Job.ID == key.ID
}

// inodeOf is that of the cgroup that stands for a job; the zero value = unknown.
func (s *Sampler) inodeOf(f attrib.Found) inode {
	dir := firstDir(f)
	if dir == "" {
		return inode{}
	}
	in, _ := collector.Get(s.worker(finding), func() (inode, error) { return inodeOf(dir), nil }) // unknown where it hangs
	return in
}

// resume gives a job the joules that an earlier exporter counted for it, and reports
// whether there were any. It does not forget them.
func (s *Sampler) resume(j *job) bool {
	j.inode = s.inodeOf(j.found)
	was, ok := s.counted(j.inode, j.stored)
	if !ok {
		return false
	}
	j.joules, j.saves, j.saved, j.budgets = was.Joules, was.Job.Saves, was.Job.Saved, was.Budgets
	j.source = was.Source
	j.seen = was.Job.First
	if j.seen.IsZero() { // of an exporter that did not keep it
		j.seen = was.Job.Started
	}
	j.reports.saves = j.saves // a reader that begins anew reports them again
	if !j.counted && was.Job.Attempt > 0 && j.stored.Manager != attrib.Local {
		j.stored.Attempt = was.Job.Attempt
	}
	return true
}

// forgotten is how long after its begin the sampler passes on what an earlier exporter
// knew of jobs that it has not found: it may be ended, too, before it finds them.
const forgotten = 15 * time.Minute

// state is what the next exporter has to know.
func (s *Sampler) state(latest []window.Latest, ended map[attrib.Key]energy.Joules) state.State {
	out := state.State{Boot: s.cfg.Boot, At: s.stats.LastTickBegan, Jobs: make([]state.Job, 0, len(latest))}
	running := make(map[attrib.Key]*job, len(s.jobs))
	for _, j := range s.jobs {
		running[j.stored] = j
	}
	for _, l := range latest {
		key := attrib.Key{Manager: l.Job.Manager, ID: l.Job.ID, Attempt: l.Job.Attempt}
		kept := state.Job{Job: l.Job, Schema: l.Schema, Source: l.Source, Budgets: l.Budgets}
		switch j := running[key]; {
		case l.Job.Ended:
			kept.Ended, kept.Joules, kept.Values = l.Ended, ended[key], s.store.Named(l)
		case j != nil && j.inode.number != 0:
			kept.Inode, kept.Joules = j.inode.number, j.joules
		default:
			continue // nothing to know it again by
		}
		out.Jobs = append(out.Jobs, kept)
	}
	if now := s.stats.LastTickBegan; now.Sub(s.began) < forgotten {
		for _, j := range s.earlier { // which were not found yet
			out.Jobs = append(out.Jobs, j)
		}
	}
	return out
}

// writeJournal keeps what is about to be shown, before it is shown.
func (s *Sampler) writeJournal(now state.State) {
	if s.cfg.Journal == nil || !s.cfg.Keep {
		return
	}
	_, err := collector.Get(s.worker("journal"), func() (any, error) { return nil, s.cfg.Journal(now) })
	if errors.Is(err, collector.ErrSilent) {
		return // it is shown as a source that does not answer
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != s.unkept {
		s.log.Warn("journal of jobs' joules changed state", "err", text)
		s.unkept = text
	}
}
