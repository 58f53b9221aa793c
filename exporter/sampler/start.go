package sampler

import (
	"errors"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
)

// restarted reports whether f is a later start of a job that keeps its id: the
// scheduler counts another one, or the cgroups were made anew. Those of a task of Nomad
// may stay, empty, until a restart in place.
func (j *job) restarted(f scanned) bool {
	return f.Reborn(j.found) || j.counted && f.Attempt > 0 && f.Attempt != j.stored.Attempt ||
		j.over && f.Key.Manager == attrib.Nomad && f.anyone
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
	if !s.store.Renumber(j.stored, f.Attempt) {
		s.log.Warn("attempt keeps its own number", "job", j.stored.String(), "attempt", f.Attempt)
		return
	}
	s.log.Info("attempt number known from the job", "job", j.stored.String(), "attempt", f.Attempt)
	j.stored.Attempt = f.Attempt
}

// restartedInPlace lets a job of Nomad go on with what an earlier start in the same
// allocation has used: that is one attempt, whose samples begin anew.
func (s *Sampler) restartedInPlace(j *job) {
	if joules, ok := s.ended[j.stored]; ok {
		j.joules = joules
	}
	for _, was := range s.store.Jobs(func(w api.Job) bool {
		return w.Ended && w.Manager == j.stored.Manager && w.ID == j.stored.ID && w.Attempt == j.stored.Attempt
	}) {
		j.saves, j.saved, j.seen = was.Saves, was.Saved, was.First
	}
	j.budgets = s.store.Budgets(j.stored)
	if t := s.last[j.stored]; t != nil {
		// Its output goes on too.
		j.reports.epochs, j.reports.saves, j.reports.before = t.epochs, t.saves, max(t.epoch, t.before)
	}
}

// placeForPerf moves the processes of a scheduler's job to a cgroup where perf looks, where
// that is wanted, and reports whether the job got one just now. The local scheduler makes
// its own.
func (s *Sampler) placeForPerf(j *job) bool {
	if s.cfg.PerfCgroups == nil || !j.found.Confirmed || j.found.Key.Manager == attrib.Local {
		return false
	}
	if j.found.Dirs[s.cfg.PerfCgroups.Hierarchy()] != "" { // some make it after the others
		had := j.perfDir != ""
		s.removePerfCgroup(j)
		return had
	}
	found, had, name := j.found, j.perfDir != "", perfCgroupName(j)
	dir, err := collector.Get(s.worker(finding), func() (string, error) {
		if pids := found.Processes(); len(pids) > 0 || had { // else it is being made
			return s.cfg.PerfCgroups.Put(name, pids)
		}
		return "", nil
	})
	text := ""
	switch {
	case errors.Is(err, collector.ErrSilent):
		return false
	case err != nil:
		s.stats.ReadErrors++
		text = err.Error()
	}
	if text != j.perfDirErr && text != "" {
		s.log.Warn("job is not wholly in its perf cgroup", "job", j.stored.String(), "err", err)
	}
	j.perfDirErr = text
	if dir == "" || dir == j.perfDir {
		return false
	}
	j.perfDir = dir
	return true
}

// removePerfCgroup removes the perf cgroup of a job that is over.
func (s *Sampler) removePerfCgroup(j *job) {
	if j.perfDir == "" {
		return
	}
	name, remove := j.stored.String(), perfCgroupName(j)
	s.worker(finding).Then(func() {
		if err := s.cfg.PerfCgroups.Remove(remove); err != nil {
			s.log.Debug("perf cgroup stays", "job", name, "err", err)
		}
	})
	j.perfDir = ""
}

// perfCgroupName does not hold the attempt, whose number may become known later: of one
// job one attempt runs.
func perfCgroupName(j *job) string { return j.found.Key.Manager + "-" + j.found.Key.ID }
