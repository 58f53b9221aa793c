package broker

import (
	"sync"
	"time"
)

// complaints bound how often the log tells of callers who were refused: anybody can
// connect, as often as he likes.
type complaints struct {
	mu    sync.Mutex
	since time.Time
	told  int
	kept  int
}

// At most so many lines within such a time.
const (
	maxComplaints    = 20
	complaintsPeriod = time.Minute
)

// add tells whether to tell of one more, and of how many nothing was told within the
// time that just ended.
func (c *complaints) add(now time.Time) (tell bool, kept int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= complaintsPeriod {
		kept, c.since, c.told, c.kept = c.kept, now, 0, 0
	}
	if c.told < maxComplaints {
		c.told++
		return true, kept
	}
	c.kept++
	return false, kept
}

// turnedAway logs that a caller was refused, where that was not told too often.
func (s *Server) turnedAway(uid uint32, what string, why any) {
	tell, kept := s.complaints.add(time.Now())
	if kept > 0 {
		s.cfg.Logger.Warn("more callers were refused", "count", kept)
	}
	if tell {
		s.cfg.Logger.Warn("refused", "verb", what, "peer", uid, "reason", why)
	}
}
