package window

import (
	"math"
	"slices"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
)

// Ended names the attempt of a job that ended and is still kept: the one with that
// number, or the last that ended where number is 0. An empty manager means any.
func (s *Store) Ended(manager, id string, number int) (attrib.Key, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var found attrib.Key
	var last *attempt
	for key, a := range s.jobs {
		if !a.job.Ended || key.ID != id || manager != "" && key.Manager != manager || number > 0 && key.Attempt != number {
			continue
		}
		if last == nil || a.endedAt.After(last.endedAt) {
			found, last = key, a
		}
	}
	return found, last != nil
}

// Late adds what an attempt that has ended had reported before, and reports whether there
// is such a one. A mark of an epoch stands at the end of the attempt, with the values
// that it ended with: the epoch cannot have ended later.
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
