package peercred

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Complaints log for the operator why callers were refused, at most so many at once and in a
// minute: every caller who reaches the address can cause them.
type Complaints struct {
	Log *slog.Logger

	once  sync.Once
	limit *rate.Limiter
	more  atomic.Int64 // that were not logged
}

const maxComplaints = 20

// Write logs what http.Server writes to its log: a handshake that failed, or trouble of its
// own.
func (c *Complaints) Write(p []byte) (int, error) {
	line := strings.TrimSpace(strings.TrimPrefix(string(p), "http: "))
	if rest, ok := strings.CutPrefix(line, "TLS handshake error from "); ok {
		caller, reason, _ := strings.Cut(rest, ": ")
		c.Add(caller, reason)
		return len(p), nil
	}
	c.Log.Warn("trouble with a caller", "error", line)
	return len(p), nil
}

// Add logs that a caller was refused, where that was not done too often, and how many were
// refused unlogged before.
func (c *Complaints) Add(caller string, reason any) {
	c.once.Do(func() { c.limit = rate.NewLimiter(rate.Every(time.Minute/maxComplaints), maxComplaints) })
	if !c.limit.Allow() {
		c.more.Add(1)
		return
	}
	c.Log.Warn("a caller was refused", "caller", caller, "reason", reason, "unlogged", c.more.Swap(0))
}
