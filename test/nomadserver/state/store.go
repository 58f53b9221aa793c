package state

import (
	"sync"
	"sync/atomic"
)

// Change is one row after a transaction.
type Change struct {
	Table string
	// Row is an *api.Job, *api.Evaluation or *api.Allocation.
	Row any
	// Deleted tells that the row is no more.
	Deleted bool

	name any // what tells rows of a table apart
}

// Commit is one transaction.
type Commit struct {
	Index uint64
	Kind  string // such as JobRegistered
	// Batches are the changes in the groups in which they became visible.
	Batches [][]Change
}

// Store serves transactions one after the other.
type Store struct {
	last atomic.Uint64 // index that was given out last

	mu      sync.RWMutex
	tables  *Tables
	changed chan struct{}
	told    func(Commit)
}

// New makes an empty one. told is called with each commit in order, and may not call
// the store.
func New(told func(Commit)) *Store {
	s := &Store{tables: newTables(), changed: make(chan struct{}), told: told}
	s.last.Store(s.tables.index)
	return s
}

// Read shows the tables; they may not be kept.
func (s *Store) Read(f func(*Tables)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	f(s.tables)
}

// Changed is closed at the next commit. Ask before reading, so that none is missed.
func (s *Store) Changed() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.changed
}

// Write runs a transaction and returns its index. When f fails it must have changed
// nothing; its index is lost then.
func (s *Store) Write(kind string, f func(*Tx) error) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx := &Tx{Tables: s.tables, at: s.last.Add(1)}
	if err := f(tx); err != nil {
		return 0, err
	}
	tx.settle()
	s.tables.index = tx.at
	close(s.changed)
	s.changed = make(chan struct{})
	if len(tx.batches) > 0 {
		s.told(Commit{Index: tx.at, Kind: kind, Batches: tx.batches})
	}
	return tx.at, nil
}

// Next uses up an index for something that is kept elsewhere. It takes no lock.
func (s *Store) Next() uint64 { return s.last.Add(1) }
