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
	// ErrDamaged means that what is stored under a key is not what was put there.
	ErrDamaged = errors.New("store is damaged")
	// ErrLost means that this process does not lead any more.
	ErrLost = errors.New("leadership lost")
	// ErrClosed means that the store was closed.
	ErrClosed = errors.New("store is closed")
)

// Version tells the states of one key apart. It only grows, also where the key was
// deleted and put anew. Zero is no version.
type Version uint64

// Entry is a value under its key.
type Entry struct {
	Key     string
	Value   []byte // nil where only keys were asked for
	Version Version
}

// Store keeps values under keys, for one controller or for several. All methods are
// safe for concurrent use. Keys are as CheckKey wants them, values of at most MaxValue
// bytes; an empty one is a value.
type Store interface {
	// Get returns what is stored under the key, or ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)
	// Keys returns the keys that begin with prefix and their versions, in the order of
	// the keys and without values. Any text is a prefix; the empty one is that of all.
	Keys(ctx context.Context, prefix string) ([]Entry, error)
	// List is Keys with the values. What is written meanwhile may be in it or not, and
	// each entry is whole.
	List(ctx context.Context, prefix string) ([]Entry, error)
	// Put stores a value where the key has the version, 0 meaning that it is not
	// there; else it is ErrConflict and nothing changed. It is durable when Put
	// returns. After ErrUnavailable, or when ctx ended, nobody knows whether it is
	// stored.
	Put(ctx context.Context, key string, value []byte, version Version) (Version, error)
	// Delete removes the key where it has the version, else ErrConflict; what is not
	// there is ErrNotFound.
	Delete(ctx context.Context, key string, version Version) error
	// Lead waits until this process leads under the name, a key of its own kind, or ctx
	// ends. Holder says who that is, for people. The lease outlives ctx.
	Lead(ctx context.Context, name, holder string) (Lease, error)
	// Leader returns the holder that leads under the name, or ErrNotFound where none
	// does. It may be out of date when it returns.
	Leader(ctx context.Context, name string) (holder string, err error)
	// Close lets go of the store and of every lease.
	Close() error
}

// Lease is the leadership of this process. At any time at most one lease of a name
// passes its Check, and between the last Check that one passes and the first that
// another does there lies, where the leader did not release it, a pause of the
// length that the store is set up with.
type Lease interface {
	// Lost is closed when the leadership has or may have ended, Release included.
	Lost() <-chan struct{}
	// Check asks the store whether the leadership stands; ErrLost where it does not.
	// Any other error leaves that open: who gets one must not act.
	Check(ctx context.Context) error
	// Release gives the leadership back, by the ctx given here, so that another can
	// have it at once. Where it was lost already there is nothing to do.
	Release(ctx context.Context) error
}
