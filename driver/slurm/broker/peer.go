package broker

import (
	"context"
	"fmt"
	"net"
	"slices"

	"pitchpipe/driver"
	"pitchpipe/exporter/api/peercred"
)

// caller is the key of the peer's uid, or of why it is not known, in the context of a
// connection.
type caller struct{}

// withCaller keeps who opened a connection.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	who, err := peercred.Of(c)
	if err != nil {
		return context.WithValue(ctx, caller{}, err)
	}
	return context.WithValue(ctx, caller{}, who.UID)
}

// admit returns the caller, where it is one that may ask.
func (s *Server) admit(ctx context.Context) (uint32, error) {
	switch who := ctx.Value(caller{}).(type) {
	case uint32:
		if s.controller(who) {
			return who, nil
		}
		return who, fmt.Errorf("only the site's controller may ask, and uid %d is not the account that it runs under: %w", who, driver.ErrDenied)
	case error:
		return peercred.Nobody, fmt.Errorf("the caller is unknown: %w: %w", driver.ErrDenied, who)
	}
	return peercred.Nobody, fmt.Errorf("the caller is unknown: %w", driver.ErrDenied)
}

// gate lets few of each user in, and closes what is above that at once.
func (s *Server) gate(l net.Listener) net.Listener {
	return &peercred.Listener{
		Listener: l, Room: peercred.Room{All: 64, Strangers: 32, Each: 8}, Known: s.controller,
		Full: func(c peercred.Caller) { s.complaints.Add(c.String(), "too many connections at a time") },
	}
}

// controller reports whether requests of this user are answered.
func (s *Server) controller(uid uint32) bool {
	return uid == 0 || slices.Contains(s.cfg.Controllers, uid)
}
