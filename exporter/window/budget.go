package window

import (
	"cmp"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
)

// Allow takes what an origin says an attempt may use, and reports whether there is such
// an attempt.
func (s *Store) Allow(key attrib.Key, by api.Origin, b api.Budget) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.jobs[key]
	if a != nil {
		a.allow(a.budgets.With(by, b))
	}
	return a != nil
}

// AllowAll gives an attempt the budgets that an earlier one of it had.
func (s *Store) AllowAll(key attrib.Key, all api.Budgets) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.jobs[key]; a != nil {
		a.allow(all)
	}
}

// Budgets are all that were said of an attempt.
func (s *Store) Budgets(key attrib.Key) api.Budgets {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.jobs[key]; a != nil {
		return a.budgets
	}
	return nil
}

// allow replaces what holds; a set is never changed, so that it can be handed out.
func (a *attempt) allow(all api.Budgets) { a.budgets, a.job.Budget = all, all.Lowest() }

// Find names the attempt that Window would show.
func (s *Store) Find(id string, number int, visible func(api.Job) bool) (attrib.Key, api.Job, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	key, a := s.find(id, number, visible)
	if a == nil {
		return attrib.Key{}, api.Job{}, false
	}
	return key, a.job, true
}

func (s *Store) find(id string, number int, visible func(api.Job) bool) (attrib.Key, *attempt) {
	manager := ""
	if before, after, ok := strings.Cut(id, "/"); ok { // no id has a slash
		manager, id = before, after
	}
	var found attrib.Key
	var a *attempt
	for key, c := range s.jobs {
		if key.ID != id || manager != "" && key.Manager != manager || number > 0 && key.Attempt != number || !visible(c.job) {
			continue
		}
		if a == nil || cmp.Or(c.job.Started.Compare(a.job.Started), c.job.Attempt-a.job.Attempt) > 0 {
			found, a = key, c
		}
	}
	return found, a
}
