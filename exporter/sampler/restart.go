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
