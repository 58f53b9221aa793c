package broker

import (
	"context"
	"fmt"
	"net"

	"pitchpipe/driver"
	"pitchpipe/driver/door"
)

// caller is the key of the peer's uid, or of why it is not known, in the context of a
// connection.
type caller struct{}

// withCaller keeps who opened a connection.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	uid, err := door.UID(c)
	if err != nil {
		return context.WithValue(ctx, caller{}, err)
	}
	return context.WithValue(ctx, caller{}, uid)
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
		return door.Nobody, fmt.Errorf("nobody knows who asks: %w: %w", driver.ErrDenied, who)
	}
	return door.Nobody, fmt.Errorf("nobody knows who asks: %w", driver.ErrDenied)
}
