package sampler

import (
	"cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/hostfs"
)

// restarted tells whether f is a later start of a job that keeps its id: the
// scheduler counts another one, or the cgroups were made anew. Those of a task of Nomad
// may stay, empty, until a restart in place.
func (j *job) restarted(f sight) bool {
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
	s.log.Info("attempt is told by its job", "job", j.stored.String(), "attempt", f.Attempt)
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
		j.told.epochs, j.told.saves, j.told.before = t.epochs, t.saves, max(t.epoch, t.before)
	}
}

// leaf sees to it that the processes of a scheduler's job are in a cgroup where perf
// looks, where that is wanted, and tells whether the job got one just now. The local scheduler
// makes its own.
func (s *Sampler) leaf(j *job) bool {
	if s.cfg.Leaves == nil || !j.found.Confirmed || j.found.Key.Manager == attrib.Local {
		return false
	}
	if j.found.Dirs[cmp.Or(s.cfg.LeafTree, hostfs.Unified)] != "" { // some make it after the others
		left := j.leaf != ""
		s.fell(j)
		return left
	}
	put := &struct {
		dir string
		err error
	}{}
	found, had, name := j.found, j.leaf != "", leafName(j)
	silent := s.worker(finding).Do(func() {
		if pids := found.Processes(); len(pids) > 0 || had { // else it is being made
			put.dir, put.err = s.cfg.Leaves.Put(name, pids)
		}
	})
	if silent != nil {
		return false
	}
	dir, err := put.dir, put.err
	text := ""
	if err != nil {
		s.stats.ReadErrors++
		text = err.Error()
	}
	if text != j.leafErr && text != "" {
		s.log.Warn("job is not wholly in its leaf", "job", j.stored.String(), "err", err)
	}
	j.leafErr = text
	if dir == "" || dir == j.leaf {
		return false
	}
	j.leaf = dir
	return true
}

// fell takes the leaf of a job away that is over.
func (s *Sampler) fell(j *job) {
	if j.leaf == "" {
		return
	}
	name, remove := j.stored.String(), leafName(j)
	s.worker(finding).Then(func() {
		if err := s.cfg.Leaves.Remove(remove); err != nil {
			s.log.Debug("leaf stays", "job", name, "err", err)
		}
	})
	j.leaf = ""
}

// leafName does not hold the attempt, whose number may become known later: of one
// job one attempt runs.
func leafName(j *job) string { return j.found.Key.Manager + "-" + j.found.Key.ID }
