package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"pitchpipe/driver"
)

// caller is the key of the peer's uid, or of why it is not known, in the context of a
// connection.
type caller struct{}

// withCaller keeps who opened a connection.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	g, ok := c.(*guest)
	switch {
	case !ok:
		return ctx
	case g.err != nil:
		return context.WithValue(ctx, caller{}, g.err)
	}
	return context.WithValue(ctx, caller{}, g.uid)
}

// uidOf asks the kernel who opened a connection.
func uidOf(c net.Conn) (uint32, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0, errors.New("not a socket")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0, err
	}
	var uid uint32
	err2 := errors.New("nobody asked")
	err = raw.Control(func(fd uintptr) {
		var cred *syscall.Ucred
		if cred, err2 = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err2 == nil {
			uid = cred.Uid
		}
	})
	return uid, errors.Join(err, err2)
}

// admit tells who asks, where it is somebody who may.
func (s *Server) admit(ctx context.Context) (uint32, error) {
	switch who := ctx.Value(caller{}).(type) {
	case uint32:
		if s.controller(who) {
			return who, nil
		}
		return who, fmt.Errorf("only the site's controller may ask, and uid %d is not the account that it runs under: %w", who, driver.ErrDenied)
	case error:
		return noUID, fmt.Errorf("nobody knows who asks: %w: %w", driver.ErrDenied, who)
	}
	return noUID, fmt.Errorf("nobody knows who asks: %w", driver.ErrDenied)
}

// noUID is the uid that the kernel never gives.
const noUID = ^uint32(0)
