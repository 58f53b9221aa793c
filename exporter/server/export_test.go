package server

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

// NewBounded is a listener with so many connections at a time.
func NewBounded(l net.Listener, most int) net.Listener { return newBounded(l, most) }

// ServeRemote serves callers on other machines on a listener of the test's.
func (s *Server) ServeRemote(ctx context.Context, l net.Listener) error {
	return s.remote.serve(ctx, l)
}

// RemoteHandler answers callers whom a handshake let in, on connections whose context
// is that of Connected.
func (s *Server) RemoteHandler() http.Handler { return s.remote.handler() }

// Connected is the context of a new connection.
func Connected(ctx context.Context) context.Context { return withLink(ctx, nil) }

// NewFair is a listener with so many connections of each user, and of all together, on
// which one user comes.
func NewFair(s *Server, l net.Listener, each, all int, uid uint32) net.Listener {
	f := s.fair(l, func(net.Conn) peerResult { return peerResult{peer: s.peer(1, uid)} })
	f.each, f.all = each, all
	return f
}

// Owner is the user of one end of a TCP connection.
func Owner(local, remote net.Addr) (uint32, error) { return owner(local, remote) }

// Limits of one user: requests in a second and at once, of questions and of reports.
const (
	QuestionsPerSecond, QuestionsAtOnce = questionsPerSecond, questionsAtOnce
	ReportsPerSecond, ReportsAtOnce     = reportsPerSecond, reportsAtOnce
)

// NewRates is what bounds the requests of each user.
func NewRates() func(uid uint32, report bool, now time.Time) bool {
	return (&rates{users: map[uint32]*rate{}}).allow
}

// As is the context of a request of a user on the socket.
func (s *Server) As(ctx context.Context, uid uint32) context.Context {
	return context.WithValue(ctx, peerKey{}, peerResult{peer: s.peer(1, uid)})
}

// Listed finds a connection in a list in the form of /proc/net/tcp.
func Listed(list, local, remote string) (uint32, bool) {
	return connectionOf(bufio.NewScanner(strings.NewReader(list)), local, remote)
}
