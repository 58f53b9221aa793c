package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
)

// peer is who opened a connection, as the kernel says.
type peer struct {
	pid int
	uid uint32
	all bool // he may see the jobs of everybody
}

func (p peer) sees(j api.Job) bool { return p.all || p.uid == j.UID }

type peerKey struct{}

type peerResult struct {
	peer peer
	err  error
}

func (s *Server) peer(pid int, uid uint32) peer {
	return peer{pid: pid, uid: uid, all: uid == 0 || slices.Contains(s.cfg.Readers, uid)}
}

// String names the user for the log.
func (p peer) String() string { return fmt.Sprintf("user %d", p.uid) }

// onSocket asks the kernel who opened a connection on the socket.
func (s *Server) onSocket(c net.Conn) peerResult {
	p, err := credentials(c)
	if err != nil {
		return peerResult{err: err}
	}
	return peerResult{peer: s.peer(p.pid, p.uid)}
}

// withPeer keeps who opened a connection, which was asked when it was accepted.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	who := peerResult{err: errors.New("no peer credentials")}
	if k, ok := c.(*known); ok {
		who = k.who
	}
	return context.WithValue(ctx, peerKey{}, who)
}

func credentials(c net.Conn) (peer, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return peer{}, errors.New("not a Unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return peer{}, fmt.Errorf("peer credentials: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return peer{}, fmt.Errorf("peer credentials: %w", err)
	}
	if credErr != nil {
		return peer{}, fmt.Errorf("peer credentials: %w", credErr)
	}
	return peer{pid: int(cred.Pid), uid: cred.Uid}, nil
}

func peerOf(ctx context.Context) (peer, error) {
	r, ok := ctx.Value(peerKey{}).(peerResult)
	if !ok {
		return peer{}, errors.New("no peer credentials")
	}
	return r.peer, r.err
}
