package sampler

import (
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
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
	was, ok := s.ended[j.stored]
	if !ok {
		return
	}
	j.joules, j.budgets = was.joules, s.store.Budgets(j.stored)
	j.was, _ = s.store.Find(j.stored.Manager+"/"+j.stored.ID, j.stored.Attempt, func(w api.Job) bool { return w.Ended })
	// Its output goes on too.
	j.reports.epochs, j.reports.saves, j.reports.before = was.reports.epochs, was.reports.saves, max(was.reports.epoch, was.reports.before)
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
	uid, ok := f.UID, f.HasUID
	if !ok {
		uid, ok = f.user, f.owned
	}
	return !ok || uid != j.uid
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
