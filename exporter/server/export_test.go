package server

import (
	"context"
	"net"
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"pitchpipe/exporter/api/peercred"
)

// ServeRemote serves callers on other machines on a listener of the test's.
func (s *Server) ServeRemote(ctx context.Context, l net.Listener) error {
	return s.remote.serve(ctx, l)
}

// RemoteHandler answers callers whom a handshake let in.
func (s *Server) RemoteHandler() http.Handler { return s.remote.handler() }

// Limits of one user: requests in a second and at once, of questions and of reports.
const (
	QuestionsPerSecond, QuestionsAtOnce = questionsPerSecond, questionsAtOnce
	ReportsPerSecond, ReportsAtOnce     = reportsPerSecond, reportsAtOnce
)

// NewRates is what bounds the requests of each user.
func NewRates() func(who peercred.Share, report bool, now time.Time) bool {
	return (&rates{users: map[asker]*rate.Limiter{}}).allow
}

// As is the context of a request of a user on the socket.
func (s *Server) As(ctx context.Context, uid uint32) context.Context {
	return context.WithValue(ctx, peerKey{}, s.peer(peercred.Caller{PID: 1, UID: uid, Start: 1, Share: peercred.Share{UID: uid}}, nil))
}
