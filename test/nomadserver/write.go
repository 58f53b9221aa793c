package nomadserver

import (
	"errors"

	"pitchpipe/test/nomadserver/state"
)

// errNothing ends a transaction that has nothing to write.
var errNothing = errors.New("nothing to write")

// write runs a transaction of the cluster's own, which may turn out to be needless.
func (s *Server) write(kind string, f func(*state.Tx) error) {
	if _, err := s.store.Write(kind, f); err != nil && !errors.Is(err, errNothing) {
		s.opts.Logger.Error("a transaction failed", "kind", kind, "error", err)
	}
}
