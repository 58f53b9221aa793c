package window

import (
	"cmp"
	"math"
	"slices"
	"time"

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
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.jobs[key]; a != nil {
		a.allow(a.Budgets.With(by, b))
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

// Saved counts a checkpoint that a running attempt saved, and returns how many it has; 0
// where there is no such attempt.
func (s *Store) Saved(key attrib.Key, at time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.jobs[key]
	if a == nil || a.Job.Ended {
		return 0
	}
	a.saved(at)
	return a.Job.Saves
}

func (a *attempt) saved(at time.Time) {
	a.Job.Saves++
	if at.After(a.Job.Saved) {
		a.Job.Saved = at
	}
}

// Late adds a report to an attempt that has ended, and reports whether there is one. A mark
// of an epoch is put at the end of the attempt, with the values that it ended with: the epoch
// cannot have ended later.
func (s *Store) Late(key attrib.Key, report api.Report) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.jobs[key]
	if a == nil || !a.Job.Ended {
		return false
	}
	if report.Saved {
		a.saved(report.Time)
		return true
	}
	r := row{time: a.lastTime, mark: &report, ended: true}
	if slices.ContainsFunc(a.last, func(v float64) bool { return !math.IsNaN(v) }) {
		r.values = a.pack(a.last)
	}
	s.push(a, r)
	return true
}
