package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// complaints tell the operator why callers were refused, and no more than so often:
// anybody who reaches the address can bring them about.
type complaints struct {
	log *slog.Logger

	mu    sync.Mutex
	since time.Time
	told  int
	more  int
}

// At most so many lines within such a time.
const (
	maxComplaints    = 20
	complaintsPeriod = time.Minute
)

// Handle implements slog.Handler for what http.Server logs: a handshake that failed,
// else trouble of its own.
func (c *complaints) Handle(_ context.Context, r slog.Record) error {
	if rest, ok := strings.CutPrefix(r.Message, "http: TLS handshake error from "); ok {
		caller, reason, _ := strings.Cut(rest, ": ")
		c.add(caller, errors.New(reason))
		return nil
	}
	c.log.Warn("trouble with a caller", "error", strings.TrimPrefix(r.Message, "http: "))
	return nil
}

// Enabled implements slog.Handler.
func (c *complaints) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (c *complaints) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup implements slog.Handler.
func (c *complaints) WithGroup(string) slog.Handler { return c }

func (c *complaints) add(caller string, err error) {
	c.mu.Lock()
	now, more := time.Now(), 0
	if now.Sub(c.since) >= complaintsPeriod {
		more, c.since, c.told, c.more = c.more, now, 0, 0
	}
	c.told++
	tell := c.told <= maxComplaints
	if !tell {
		c.more++
	}
	c.mu.Unlock()
	if more > 0 {
		c.log.Warn("more callers were refused", "count", more)
	}
	if tell {
		c.log.Warn("a caller was refused", "caller", caller, "reason", err)
	}
}
