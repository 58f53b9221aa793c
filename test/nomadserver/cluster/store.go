package cluster

import (
	"sync"

	"github.com/hashicorp/nomad/api"
)

// Store runs transactions one after the other.
type Store struct {
	mu        sync.RWMutex
	tables    *Tables
	changed   chan struct{}
	committed func([]*api.Allocation, []*api.Evaluation)
}

// NewStore makes an empty store. It calls committed after each transaction with the
// allocations and evaluations that changed; committed must not call the store.
func NewStore(committed func([]*api.Allocation, []*api.Evaluation)) *Store {
	return &Store{tables: newTables(), changed: make(chan struct{}), committed: committed}
}

// Read calls f with the tables. They are valid until f returns; rows are valid for ever.
func (s *Store) Read(f func(*Tables)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f(s.tables)
}

// Changed is closed at the next commit. Call it before a read, so that no change is missed.
func (s *Store) Changed() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.changed
}

// Write runs a transaction and returns its index. When f fails it must have changed
// nothing.
func (s *Store) Write(f func(*Tx) error) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := &Tx{Tables: s.tables, at: s.tables.index + 1, unsure: map[ID]struct{}{}}
	if err := f(tx); err != nil {
		return 0, err
	}
	tx.settle()
	s.tables.index = tx.at
	close(s.changed)
	s.changed = make(chan struct{})
	s.committed(tx.allocs, tx.evals)
	return tx.at, nil
}
