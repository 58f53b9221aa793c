package window

import (
	"time"

	"pitchpipe/exporter/attrib"
)

// Saved counts that an attempt saved a checkpoint once more, at that time, and returns how
// often it has. An attempt that is not there, or has ended, is not counted: that is 0.
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
