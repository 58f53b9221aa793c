package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
)

// peer is who opened a connection, as the kernel says.
type peer struct {
	peercred.Caller
	all bool  // the caller may see the jobs of all users
	err error // why the caller is unknown
}

func (p peer) sees(j api.Job) bool { return p.all || p.UID == j.UID }

type peerKey struct{}

// privileged reports whether a user may see the jobs of all users.
func (s *Server) privileged(uid uint32) bool { return uid == 0 || slices.Contains(s.cfg.Readers, uid) }

func (s *Server) peer(c peercred.Caller, err error) peer {
	return peer{Caller: c, all: err == nil && s.privileged(c.UID), err: err}
}

// withPeer keeps who opened a connection, which the kernel said when it was accepted.
func (s *Server) withPeer(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, peerKey{}, s.peer(peercred.Of(c)))
}

func peerOf(ctx context.Context) peer {
	p, ok := ctx.Value(peerKey{}).(peer)
	if !ok {
		return peer{Caller: peercred.Caller{UID: peercred.Nobody}, err: errors.New("no peer credentials")}
	}
	return p
}

// fair bounds the connections of a listener.
func (s *Server) fair(l net.Listener) *peercred.Listener {
	refused := &peercred.Complaints{Log: s.log}
	return &peercred.Listener{
		Listener: l, Known: s.privileged,
		Room: peercred.Room{All: 768, Strangers: 512, Each: 128, Own: 8}, // root and the readers are never kept out
		Owns: func(uid uint32) bool {
			return len(s.store.Jobs(func(j api.Job) bool { return !j.Ended && j.UID == uid })) > 0
		},
		Full: func(c peercred.Caller) { refused.Add(c.String(), errCrowd) },
	}
}

var errCrowd = errors.New("too many connections at a time")
