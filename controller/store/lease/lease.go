package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"pitchpipe/controller/store"
)

// Lock is one lock of a store, as one contender sees it. Its methods are not called
// at the same time, but for Check.
type Lock interface {
	// Try takes the lock if it is free.
	Try(ctx context.Context) (bool, error)
	// Renew makes the lock live on for its time to live; store.ErrLost where it is
	// not this contender's any more.
	Renew(ctx context.Context) error
	// Check asks the store whose it is; store.ErrLost where it is not ours.
	Check(ctx context.Context) error
	// Release gives it back and forgets everything of it, also where it was never
	// taken, or lost.
	Release(ctx context.Context) error
}

// Config says how a lock is kept.
type Config struct {
	TTL   time.Duration // for how long the store keeps it without a renewal; required
	Retry time.Duration // how often a lock that another has is asked for; required
	// Log is told of renewals that fail; nil = silent.
	Log *slog.Logger
}

// Take waits for the lock and keeps it until it is lost or released. It waits on
// while the store does not answer, and ends with ctx or an error that waiting does
// not cure.
func Take(ctx context.Context, lock Lock, cfg Config) (*Lease, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	for failed := false; ; {
		sent := time.Now()
		got, err := try(ctx, lock, cfg.TTL)
		switch {
		case err == nil && got && ctx.Err() == nil:
			return hold(lock, cfg, sent), nil
		case err == nil && !got:
			failed = false
		case errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil:
			if !failed {
				cfg.Log.Warn("the store does not answer, waiting for the lock goes on", "error", err)
			}
			failed = true
		default:
			// Got or not, nobody will keep it.
			fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), cfg.TTL)
			defer cancel()
			return nil, fmt.Errorf("wait for the lock: %w", errors.Join(ctx.Err(), err, lock.Release(fresh)))
		}
		select {
		case <-ctx.Done():
		case <-time.After(cfg.Retry):
		}
	}
}

// try asks once, for no longer than an answer could still be of use.
func try(ctx context.Context, lock Lock, ttl time.Duration) (bool, error) {
	call, cancel := context.WithTimeout(ctx, ttl)
	defer cancel()
	got, err := lock.Try(call)
	if err != nil && call.Err() != nil && ctx.Err() == nil {
		return false, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return got, err
}

// Lease is a lock that is kept.
type Lease struct {
	lock Lock
	cfg  Config

	stop context.CancelFunc // ends the renewals
	done chan struct{}      // closed when they ended

	once sync.Once
	lost chan struct{}

	mu    sync.Mutex
	until time.Time // when it ends unless it is renewed
	gone  bool      // it ended without being released

	releasing sync.Mutex
	released  bool
}

var _ store.Lease = (*Lease)(nil)

func hold(lock Lock, cfg Config, sent time.Time) *Lease {
	ctx, stop := context.WithCancel(context.Background())
	l := &Lease{
		lock: lock, cfg: cfg, stop: stop, done: make(chan struct{}), lost: make(chan struct{}), until: sent.Add(cfg.TTL),
	}
	go l.keep(ctx)
	return l
}

// keep renews until it is stopped or the lease is lost.
func (l *Lease) keep(ctx context.Context) {
	defer close(l.done)
	// A renewal that hangs must not keep the lease from ending in time.
	expiry := time.AfterFunc(time.Until(l.deadline()), l.lose)
	defer expiry.Stop()
	for wait := l.cfg.TTL / 3; ; {
		select {
		case <-ctx.Done():
			return
		case <-l.lost:
			return
		case <-time.After(wait):
		}
		sent := time.Now()
		call, cancel := context.WithDeadline(ctx, l.deadline())
		err := l.lock.Renew(call)
		cancel()
		switch {
		case err == nil:
			wait = l.cfg.TTL / 3
			if !l.extend(sent.Add(l.cfg.TTL), expiry) {
				l.lose()
				return
			}
		case errors.Is(err, store.ErrLost):
			l.cfg.Log.Error("the leadership is lost", "error", err)
			l.lose()
			return
		case ctx.Err() == nil:
			l.cfg.Log.Warn("the leadership is not renewed", "until", l.deadline(), "error", err)
			wait = max(l.cfg.TTL/20, time.Millisecond)
		}
	}
}

// extend moves the end of the lease, unless it came already.
func (l *Lease) extend(until time.Time, expiry *time.Timer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.until) {
		return false
	}
	l.until = until
	expiry.Reset(time.Until(until))
	return true
}

func (l *Lease) deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until
}

func (l *Lease) end() { l.once.Do(func() { close(l.lost) }) }

// lose ends the lease without a release.
func (l *Lease) lose() {
	l.mu.Lock()
	l.gone = true
	l.mu.Unlock()
	l.end()
}

// Lost implements store.Lease.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Check implements store.Lease.
func (l *Lease) Check(ctx context.Context) error {
	if err := l.stands(); err != nil {
		return err
	}
	if err := l.lock.Check(ctx); err != nil {
		if errors.Is(err, store.ErrLost) {
			l.lose()
		}
		return fmt.Errorf("check the leadership: %w", err)
	}
	return l.stands() // the answer may have taken long
}

// stands tells what is known without asking.
func (l *Lease) stands() error {
	select {
	case <-l.lost:
		return store.ErrLost
	default:
	}
	if !time.Now().Before(l.deadline()) {
		l.lose()
		return store.ErrLost
	}
	return nil
}

// Release implements store.Lease. A lock that was lost lapses at the store by itself:
// a late release might meet the lock of the next holder.
func (l *Lease) Release(ctx context.Context) error {
	l.releasing.Lock()
	defer l.releasing.Unlock()
	l.stop()
	<-l.done
	l.mu.Lock()
	gone := l.gone || !time.Now().Before(l.until)
	l.mu.Unlock()
	l.end()
	if l.released || gone {
		return nil
	}
	if err := l.lock.Release(ctx); err != nil && !errors.Is(err, store.ErrLost) {
		return fmt.Errorf("release the leadership: %w", err)
	}
	l.released = true
	return nil
}
