package peercred

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// What one caller may take of a server's time. A request and an answer of megabytes go
// over a socket in well under a second.
const (
	headerPatience = 5 * time.Second
	readPatience   = 10 * time.Second
	writePatience  = 30 * time.Second
	idlePatience   = time.Minute
	maxHeader      = 16 << 10
)

// Serve answers until ctx ends, and then lets what began finish within grace. It bounds how
// long a caller may take to ask, to read the answer and to ask again, and the size of a header.
func Serve(ctx context.Context, s *http.Server, l net.Listener, grace time.Duration) error {
	return ServeBy(ctx, s, l, grace, s.Serve)
}

// ServeBy is Serve with another way to serve a listener, such as with TLS.
func ServeBy(ctx context.Context, s *http.Server, l net.Listener, grace time.Duration, serve func(net.Listener) error) error {
	ended := make(chan error, 1)
	s.ReadHeaderTimeout, s.ReadTimeout, s.WriteTimeout, s.IdleTimeout, s.MaxHeaderBytes = headerPatience, readPatience, writePatience, idlePatience, maxHeader
	go func() { ended <- serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := s.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.Close() // who has not asked anything by now gets no answer
	}
	if failed := <-ended; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}

// Unhurried is for handlers that may take longer than Serve allows: the body, of at most
// so many bytes, is read before they begin, and they may go on for as long as the caller
// reads each piece of the answer in time. What is wrong with the body they see when they
// read it.
func Unhurried(h http.Handler, most int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		r.Body = io.NopCloser(&whole{bytes.NewReader(body), err})
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{}) // a recorder has none
		h.ServeHTTP(&unhurried{w, control}, r)
	})
}

type whole struct {
	io.Reader
	err error
}

func (b *whole) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) && b.err != nil {
		err = b.err
	}
	return n, err //nolint:wrapcheck // it is the connection's
}

type unhurried struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Unwrap is for http.ResponseController.
func (u *unhurried) Unwrap() http.ResponseWriter { return u.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (u *unhurried) WriteHeader(status int) {
	u.extend()
	u.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (u *unhurried) Write(p []byte) (int, error) {
	u.extend()
	return u.ResponseWriter.Write(p) //nolint:wrapcheck // it is the connection
}

func (u *unhurried) extend() {
	_ = u.control.SetWriteDeadline(time.Now().Add(writePatience)) // a recorder has none
}

// Complaints log for the operator why callers were refused, at most so many at once and in a
// minute: every caller who reaches the address can cause them.
type Complaints struct {
	slog.Handler // nil: of the methods that http.Server does not call
	Log          *slog.Logger

	once  sync.Once
	limit *rate.Limiter
	more  atomic.Int64 // that were not logged
}

const maxComplaints = 20

// Handle implements slog.Handler for what http.Server logs: a handshake that failed, or its own
// trouble.
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
