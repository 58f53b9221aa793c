package lease

import (
	"context"
	"errors"
	"sync"

	"pitchpipe/controller/store"
)

// Set is the leases that one client of a store has taken. The zero value is empty.
type Set struct {
	mu     sync.Mutex
	leases []store.Lease
	closed bool
}

// Add keeps the lease for Close. After Close it is ErrClosed, and the lease is the
// caller's to release.
func (s *Set) Add(l store.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.leases = append(s.leases, l)
	return nil
}

// Closed tells whether Close was called.
func (s *Set) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close releases every lease.
func (s *Set) Close(ctx context.Context) error {
	s.mu.Lock()
	leases := s.leases
	s.leases, s.closed = nil, true
	s.mu.Unlock()
	var all []error
	for _, l := range leases {
		all = append(all, l.Release(ctx))
	}
	return errors.Join(all...)
}
