package window

import (
	"cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
)

// Key is the key of a job's attempt.
func Key(j api.Job) attrib.Key {
	return attrib.Key{Manager: j.Manager, ID: j.ID, Attempt: j.Attempt}
}

// find returns the newest attempt of a job that matches. The name is an id, such as 42, or a
// manager and an id, such as slurm/42, since no id has a slash. Number 0 is any attempt.
func (s *Store) find(name string, number int, match func(api.Job) bool) (found *attempt) {
	for _, a := range s.jobs {
		if name != a.Job.ID && name != a.Job.Manager+"/"+a.Job.ID || number > 0 && a.Job.Attempt != number || !match(a.Job) {
			continue
		}
		if found == nil || cmp.Or(a.Job.Started.Compare(found.Job.Started), a.Job.Attempt-found.Job.Attempt) > 0 {
			found = a
		}
	}
	return found
}

// Find returns the newest attempt that matches, as Window does.
func (s *Store) Find(name string, number int, match func(api.Job) bool) (api.Job, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.find(name, number, match); a != nil {
		return a.Job, true
	}
	return api.Job{}, false
}

// Allow sets what an origin lets an attempt use.
func (s *Store) Allow(key attrib.Key, by api.Origin, b api.Budget) {
	s.change(key, func(a *attempt) { a.allow(a.Budgets.With(by, b)) })
}

// change changes an attempt, where it is there.
func (s *Store) change(key attrib.Key, how func(*attempt)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.jobs[key]; a != nil {
		how(a)
	}
}

// Attempt returns an attempt without its values. Its maps never change.
func (s *Store) Attempt(key attrib.Key) (Attempt, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.jobs[key]; a != nil {
		return a.Attempt, true
	}
	return Attempt{}, false
}

func (a *attempt) allow(all api.Budgets) { a.Budgets, a.Job.Budget = all, all.Lowest() }
