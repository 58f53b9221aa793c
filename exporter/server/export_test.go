package server

import (
	"context"
	"net"
	"net/http"
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
