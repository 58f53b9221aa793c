package window

import "pitchpipe/exporter/attrib"

// Saved counts that an attempt saved a checkpoint once more, and returns how often it
// has. An attempt that is not there, or has ended, is not counted: that is 0.
func (s *Store) Saved(key attrib.Key) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.jobs[key]
	if a == nil || a.job.Ended {
		return 0
	}
	a.job.Saves++
	return a.job.Saves
}
