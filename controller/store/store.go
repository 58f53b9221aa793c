package store

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// Errors that a caller can act on.
var (
	// ErrNotFound means that the store has no such key, or no leader.
	ErrNotFound = errors.New("not found")
	// ErrConflict means that the value has another version than the caller read.
	ErrConflict = errors.New("changed meanwhile")
	// ErrUnavailable means that the store does not answer. A write may have had its effect.
	ErrUnavailable = errors.New("store unavailable")
	// ErrDenied means that the store refuses the caller.
	ErrDenied = errors.New("denied")
	// ErrInvalid means that the store cannot take the value or the configuration.
	ErrInvalid = errors.New("invalid")
	// ErrDamaged means that the store holds something that this package did not write.
	ErrDamaged = errors.New("store is damaged")
	// ErrLost means that this process does not lead any more.
	ErrLost = errors.New("leadership lost")
	// ErrStale means that another controller wrote to the log.
	ErrStale = errors.New("another controller changed the shared state")
)

// Version tells the values of one key apart. It only grows; zero is a missing key.
type Version uint64

// Entry is a value under its key.
type Entry struct {
	Key     string
	Value   []byte // nil where the store lists keys only
	Version Version
}

// KV is a store of small values that several processes share. Keys are words of letters
// and digits with slashes between them; values are not empty. All methods are safe for
// concurrent use.
type KV interface {
	// Limit is the size of the largest value, in bytes.
	Limit() int
	// Get returns an entry or ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)
	// List returns the entries whose keys begin with prefix, in any order.
	List(ctx context.Context, prefix string) ([]Entry, error)
	// Put stores a value where the key has this version, else it returns ErrConflict. The
	// value is durable when Put returns.
	Put(ctx context.Context, key string, value []byte, version Version) (Version, error)
	// Delete removes a key. A missing key is no error.
	Delete(ctx context.Context, key string) error
	// Lock is the leader lock as one candidate uses it. Holder names the candidate.
	Lock(holder string) Lock
	// Leader returns the holder of the lock, or ErrNotFound.
	Leader(ctx context.Context) (string, error)
}

// Lock holds the calls of a leader lock. Only Renew is called concurrently.
type Lock struct {
	TTL   time.Duration // the store keeps the lock for at least this long after a renewal
	Retry time.Duration // pause between two attempts
	// Acquire reports whether the candidate has the lock now. A repeated call after a lost
	// answer gives the lock again.
	Acquire func(ctx context.Context) (bool, error)
	// Renew asks the store whose the lock is and extends it, or returns ErrLost.
	Renew func(ctx context.Context) error
	// Release frees the lock, also one that was never acquired.
	Release func(ctx context.Context) error
}

// Options are the times of a lock that lapses. Zero values are the store's defaults.
type Options struct {
	TTL   time.Duration
	Delay time.Duration // a lock that lapsed stays taken for this long
	Retry time.Duration // pause between two attempts to lock; default 1 s
}

func (o Options) or(ttl, delay time.Duration) Options {
	return Options{cmp.Or(o.TTL, ttl), cmp.Or(o.Delay, delay), cmp.Or(o.Retry, time.Second)}
}

// lockKey is the key of the leader lock in Nomad and Consul.
const lockKey = "lock/leader"
