package peercred

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Complaints tell the operator why callers were refused, and no more than so often:
// every caller who reaches the address can cause them.
type Complaints struct {
	Log *slog.Logger

	mu     sync.Mutex
	since  time.Time
	logged int
	more   int
}

// At most so many lines within such a time.
const (
	maxComplaints    = 20
	complaintsPeriod = time.Minute
)

// Handle implements slog.Handler for what http.Server logs: a handshake that failed,
// else trouble of its own.
func (c *Complaints) Handle(_ context.Context, r slog.Record) error {
	if rest, ok := strings.CutPrefix(r.Message, "http: TLS handshake error from "); ok {
		caller, reason, _ := strings.Cut(rest, ": ")
		c.Add(caller, reason)
		return nil
	}
	c.Log.Warn("trouble with a caller", "error", strings.TrimPrefix(r.Message, "http: "))
	return nil
}

// Enabled implements slog.Handler.
func (c *Complaints) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (c *Complaints) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup implements slog.Handler.
func (c *Complaints) WithGroup(string) slog.Handler { return c }

// Add logs that a caller was refused, where that was not done too often.
func (c *Complaints) Add(caller string, reason any) {
	c.mu.Lock()
	now, more := time.Now(), 0
	if now.Sub(c.since) >= complaintsPeriod {
		more, c.since, c.logged, c.more = c.more, now, 0, 0
	}
	c.logged++
	allowed := c.logged <= maxComplaints
	if !allowed {
		c.more++
	}
	c.mu.Unlock()
	if more > 0 {
		c.Log.Warn("more callers were refused", "count", more)
	}
	if allowed {
		c.Log.Warn("a caller was refused", "caller", caller, "reason", reason)
	}
}
