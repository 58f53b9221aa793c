package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"pitchpipe/driver"
)

const releaseWait = 10 * time.Second

// Lease is the leadership of this process during one term.
type Lease struct {
	lock Lock
	log  *slog.Logger
	over <-chan struct{} // closed when the leadership ends
	lose func()

	mu    sync.Mutex
	until time.Time // the lock lapses at the store no earlier
}

// Lead waits for the leader lock, also while the store does not answer, runs term while this
// process holds it, and releases it. The context of term ends with cause ErrLost when the lock is
// lost.
func Lead(ctx context.Context, kv KV, holder string, log *slog.Logger, term func(ctx context.Context, l *Lease) error) (err error) {
	l := &Lease{lock: kv.Lock(holder), log: log}
	if err := l.acquire(ctx, kv, holder); err != nil {
		return fmt.Errorf("wait for the leadership: %w", errors.Join(err, l.release(ctx)))
	}
	life, lose := context.WithCancel(context.WithoutCancel(ctx)) // ctx ends the term, and not the lock
	l.over, l.lose = life.Done(), lose
	run, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(life, func() { end(ErrLost) })()
	var keeping sync.WaitGroup
	keeping.Go(func() { l.keep(life) })
	err = term(run, l)
	lost := l.Lost()
	lose()
	keeping.Wait()
	if lost {
		return err // a late release could free the lock of the next holder
	}
	return errors.Join(err, l.release(ctx))
}

func (l *Lease) release(ctx context.Context) error {
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWait)
	defer cancel()
	if err := l.lock.Release(fresh); err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("release the leadership: %w", err)
	}
	return nil
}

// acquire asks who leads before each attempt, since Nomad and Consul replicate every attempt as a
// write.
func (l *Lease) acquire(ctx context.Context, kv KV, holder string) error {
	for failed := false; ; {
		sent := time.Now()
		call, cancel := context.WithTimeout(ctx, l.lock.TTL)
		leader, err := kv.Leader(call)
		got := false
		if errors.Is(err, ErrNotFound) || err == nil && leader == holder {
			got, err = l.lock.Acquire(call)
		}
		cancel()
		switch {
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), err)
		case got && err == nil:
			l.until = sent.Add(l.lock.TTL)
			return nil
		case err != nil && !errors.Is(err, ErrUnavailable):
			return err
		case err != nil && !failed:
			l.log.Warn("the store does not answer, still waiting for the leadership", "error", err)
		}
		failed = err != nil
		_ = driver.Pause(ctx, l.lock.Retry) // the next call says that ctx has ended
	}
}

func (l *Lease) keep(ctx context.Context) {
	for wait := l.lock.TTL / 3; ; {
		if driver.Pause(ctx, min(wait, time.Until(l.deadline()))) != nil {
			return
		}
		err := l.renew(ctx)
		switch {
		case err == nil:
			wait = l.lock.TTL / 3
		case errors.Is(err, ErrLost):
			l.log.Error("the leadership is lost", "error", err)
			return
		case ctx.Err() == nil:
			l.log.Warn("the leadership is not renewed", "until", l.deadline(), "error", err)
			wait = max(l.lock.TTL/20, time.Millisecond)
		}
	}
}

func (l *Lease) deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

// renew asks the store, for no longer than the lock lasts without an answer. A process that was
// stopped for too long, as by SIGSTOP, finds its lease lost without asking.
func (l *Lease) renew(ctx context.Context) error {
	sent := time.Now()
	err := ErrLost
	if !l.Lost() {
		call, cancel := context.WithDeadline(ctx, l.deadline())
		err = l.lock.Renew(call)
		cancel()
	}
	if l.Lost() { // the answer took too long
		err = errors.Join(ErrLost, err)
	}
	switch {
	case errors.Is(err, ErrLost):
		l.lose()
	case err == nil:
		l.mu.Lock()
		if until := sent.Add(l.lock.TTL); until.After(l.until) {
			l.until = until
		}
		l.mu.Unlock()
	}
	return err
}

// Lost reports, without asking the store, whether the leadership is over.
func (l *Lease) Lost() bool {
	select {
	case <-l.over:
		return true
	default:
		return !time.Now().Before(l.deadline())
	}
}

// Check asks the store whether this process leads; ErrLost where it does not. After any other error
// the caller must not act. At any time at most one process passes its Check. Unless the leader
// released its lock, the store's delay passes between the last Check of one leader and the first of
// the next.
func (l *Lease) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.renew(ctx); err != nil {
		return fmt.Errorf("check the leadership: %w", err)
	}
	return nil
}

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
	// Delete removes a key. A missing key is not an error.
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

const lockKey = "lock/leader"
