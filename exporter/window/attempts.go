package window

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
)

// find returns the newest attempt of a job that matches. An empty manager means any, number
// 0 any attempt.
func (s *Store) find(manager, id string, number int, match func(api.Job) bool) (found attrib.Key, a *attempt) {
	for key, c := range s.jobs {
		if key.ID != id || manager != "" && key.Manager != manager || number > 0 && key.Attempt != number || !match(c.job) {
			continue
		}
		if a == nil || cmp.Or(c.job.Started.Compare(a.job.Started), c.job.Attempt-a.job.Attempt) > 0 {
			found, a = key, c
		}
	}
	return found, a
}

// findNamed is find for an id such as 42 or slurm/42; no id has a slash.
func (s *Store) findNamed(name string, number int, visible func(api.Job) bool) (attrib.Key, *attempt) {
	if manager, id, ok := strings.Cut(name, "/"); ok {
		return s.find(manager, id, number, visible)
	}
	return s.find("", name, number, visible)
}

// Find names the attempt that Window would show.
func (s *Store) Find(id string, number int, visible func(api.Job) bool) (attrib.Key, api.Job, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	key, a := s.findNamed(id, number, visible)
	if a == nil {
		return attrib.Key{}, api.Job{}, false
	}
	return key, a.job, true
}

// Ended names the newest attempt of a job that ended and is still kept, as find does.
func (s *Store) Ended(manager, id string, number int) (attrib.Key, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	key, a := s.find(manager, id, number, func(j api.Job) bool { return j.Ended })
	return key, a != nil
}

// Allow sets what an origin lets an attempt use, and reports whether there is such an
// attempt.
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

// Budgets are all that were set for an attempt. They never change, so that they can be
// handed out.
func (s *Store) Budgets(key attrib.Key) api.Budgets {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.jobs[key]; a != nil {
		return a.budgets
	}
	return nil
}

func (a *attempt) allow(all api.Budgets) { a.budgets, a.job.Budget = all, all.Lowest() }

// Saved counts a checkpoint that a running attempt saved, and returns how many it has; 0
// where there is no such attempt.
func (s *Store) Saved(key attrib.Key, at time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.jobs[key]
	if a == nil || a.job.Ended {
		return 0
	}
	a.saved(at)
	return a.job.Saves
}

func (a *attempt) saved(at time.Time) {
	a.job.Saves++
	if at.After(a.job.Saved) {
		a.job.Saved = at
	}
}

// Late adds a report to an attempt that has ended, and reports whether there is one. A mark
// of an epoch is put at the end of the attempt, with the values that it ended with: the epoch
// cannot have ended later.
func (s *Store) Late(key attrib.Key, report api.Report) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.jobs[key]
	if a == nil || !a.job.Ended {
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
