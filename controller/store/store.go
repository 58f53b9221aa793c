package store

import (
	"context"
	"errors"
)

// Errors that a caller can act on.
var (
	// ErrNotFound means that nothing is stored under this key.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the value is another version than the caller read.
	ErrConflict = errors.New("changed meanwhile")
	// ErrUnavailable means that the store does not answer, so that nobody knows
	// whether a write had its effect.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDenied means that the store refuses the caller.
	ErrDenied = errors.New("denied")
	// ErrInvalid means that the key or value cannot be stored.
	ErrInvalid = errors.New("invalid entry")
	// ErrLost means that this process does not lead any more.
	ErrLost = errors.New("leadership lost")
)

// Version tells the states of one key apart; it only grows. Zero is no version.
type Version uint64

// Entry is a value under its key.
type Entry struct {
	Key     string
	Value   []byte
	Version Version
}

// Store keeps values under keys, for one controller or for several. All methods are
// safe for concurrent use. A key is one or more words of [A-Za-z0-9_.~-] with slashes
// between them.
type Store interface {
	// Get returns what is stored under the key, or ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)
	// List returns everything whose key begins with prefix, in the order of the keys.
	List(ctx context.Context, prefix string) ([]Entry, error)
	// Put stores a value where the key has the version, 0 meaning that it is not
	// there; else it is ErrConflict and nothing changed. It is durable when Put returns.
	Put(ctx context.Context, key string, value []byte, version Version) (Version, error)
	// Delete removes the key where it has the version, else ErrConflict; what is not
	// there is ErrNotFound.
	Delete(ctx context.Context, key string, version Version) error
	// Lead waits until this process leads under the name, or ctx ends. Holder says who
	// that is, for people.
	Lead(ctx context.Context, name, holder string) (Lease, error)
	// Close lets go of the store and of every lease.
	Close() error
}

// Lease is the leadership of this process.
type Lease interface {
	// Lost is closed when the leadership may have ended.
	Lost() <-chan struct{}
	// Check asks the store whether the leadership stands; ErrLost where it does not.
	Check(ctx context.Context) error
	// Release gives the leadership back, at once and by the ctx given here.
	Release(ctx context.Context) error
}
