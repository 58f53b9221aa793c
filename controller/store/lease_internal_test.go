package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func silentLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// leader is a candidate that leads, in its own goroutine.
type leader struct {
	*Lease

	ended <-chan struct{} // closed with the term
	cause func() error    // why the term ended
	stop  context.CancelFunc
	err   chan error
}

// leading waits until the candidate leads.
func leading(t *testing.T, kv KV, holder string) *leader {
	t.Helper()
	l := candidate(t, kv, holder)
	select {
	case l2 := <-l.begun:
		return l2
	case err := <-l.err:
		t.Fatalf("%s does not lead: %v", holder, err)
	case <-time.After(patience):
		t.Fatalf("%s does not lead", holder)
	}
	return nil
}

type waiting struct {
	begun chan *leader
	err   chan error
	stop  context.CancelFunc
}

// candidate begins to wait for the leadership.
func candidate(t *testing.T, kv KV, holder string) waiting {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	w := waiting{make(chan *leader, 1), make(chan error, 1), stop}
	go func() {
		w.err <- Lead(ctx, kv, holder, silentLog(), func(term context.Context, lease *Lease) error {
			w.begun <- &leader{lease, term.Done(), func() error { return context.Cause(term) }, stop, w.err}
			<-term.Done()
			return nil
		})
	}()
	t.Cleanup(stop)
	return w
}

func (l *leader) leads(t *testing.T, who string) {
	t.Helper()
	if err := l.Check(t.Context()); err != nil || l.Lost() {
		t.Errorf("%s does not lead: %v", who, err)
	}
}

// release ends a term.
func (l *leader) release(t *testing.T) {
	t.Helper()
	l.stop()
	if err := <-l.err; err != nil {
		t.Errorf("release: %v", err)
	}
	fails(t, "check after the release", l.Check(t.Context()), ErrLost)
}

func handover(t *testing.T, of target) {
	open := of.open(t)
	first := leading(t, open(t), "first")
	next := candidate(t, open(t), "second")
	for range 10 {
		first.leads(t, "the first")
		time.Sleep(30 * time.Millisecond) // a second leader may come later, and is never there too early
	}
	if len(next.begun) > 0 {
		t.Fatal("a second leads beside the first")
	}
	// Values are written by anybody.
	v := put(t, open(t), "log/001", "a value", 0)
	put(t, open(t), "log/001", "another", v)
	first.leads(t, "the first")
	first.release(t)
	second := <-next.begun
	second.leads(t, "the second")
	fails(t, "the first checks its lease", first.Check(t.Context()), ErrLost)
	second.release(t)
}

func named(t *testing.T, of target) {
	open := of.open(t)
	asks := open(t)
	_, err := asks.Leader(t.Context())
	fails(t, "before the first leader", err, ErrNotFound)
	for _, holder := range []string{"node1 (pid 7), from 10:00", "ü", "n"} {
		l := leading(t, open(t), holder)
		if got, err := asks.Leader(t.Context()); err != nil || got != holder {
			t.Errorf("the leader is %q, %v; want %q", got, err, holder)
		}
		l.release(t)
		_, err = asks.Leader(t.Context())
		fails(t, "after the release", err, ErrNotFound)
	}
}

func stopsWaiting(t *testing.T, of target) {
	open := of.open(t)
	l := leading(t, open(t), "me")
	other := candidate(t, open(t), "other")
	other.stop()
	select {
	case err := <-other.err:
		fails(t, "the candidate", err, context.Canceled)
	case <-time.After(patience):
		t.Fatal("it goes on waiting")
	}
	l.leads(t, "the leader")
	l.release(t)
	leading(t, open(t), "third").release(t) // nothing of the candidate is left
}

// candidates lead, release and lead again at random moments; what they do after a check
// must not overlap.
func candidates(t *testing.T, of target) {
	open := of.open(t)
	var inside, overlaps atomic.Int32
	var group sync.WaitGroup
	for i := range 3 {
		kv := open(t)
		rng := rand.New(rand.NewPCG(11, uint64(i)))
		group.Go(func() {
			for round := range of.rounds / 2 {
				err := Lead(short(t), kv, fmt.Sprint(i), silentLog(), func(ctx context.Context, l *Lease) error {
					for range 1 + rng.IntN(3) {
						if err := l.Check(ctx); err != nil {
							return err
						}
						if inside.Add(1) > 1 {
							overlaps.Add(1)
						}
						time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
						inside.Add(-1)
					}
					return nil
				})
				if err != nil {
					t.Errorf("candidate %d, round %d: %v", i, round, err)
					return
				}
			}
		})
	}
	group.Wait()
	if n := overlaps.Load(); n > 0 {
		t.Errorf("two led at the same time, %d times", n)
	}
}

func silentLeader(t *testing.T, of target) {
	if !of.silent {
		t.Skip("the lock of a file belongs to a process until that ends; see the test that kills one")
	}
	open := of.open(t)
	silent := open(t)
	first := leading(t, silent, "first")
	first.leads(t, "the first")
	restore := silence(silent)
	second := leading(t, open(t), "second")
	// The first knew before the second led, without an answer of the store.
	if !first.Lost() || !errors.Is(first.cause(), ErrLost) {
		t.Error("a second leads, and the first believes that it does")
	}
	second.leads(t, "the second")
	restore()
	fails(t, "the first checks its lease", first.Check(t.Context()), ErrLost)
	if err := <-first.err; err != nil {
		t.Error(err)
	}
	second.leads(t, "the second, after the first came back,")
	second.release(t)
}

func shortSilence(t *testing.T, of target) {
	if !of.silent {
		t.Skip("a file is never silent")
	}
	kv := of.open(t)(t)
	l := leading(t, kv, "me")
	restore := silence(kv)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := l.Check(ctx); err == nil {
		t.Error("a check passes that the store did not answer")
	}
	restore()
	if err := l.Check(t.Context()); err != nil && !l.Lost() { // a slow machine may take too long
		t.Errorf("after a short silence: %v", err)
	}
	l.stop()
	if err := <-l.err; err != nil {
		t.Error(err)
	}
}

// lock is the lock of a store that keeps it for twice the time to live.
type lock struct {
	client

	mu       sync.Mutex
	free     time.Time // from when on another may have it
	renewals int
	released int
	err      error         // of every call
	hangs    time.Duration // of every call
}

const ttl = 15 * time.Second

func (l *lock) call(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	hangs, err := l.hangs, l.err
	l.mu.Unlock()
	select {
	case <-time.After(hangs):
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnavailable, ctx.Err())
	}
}

func (l *lock) Leader(ctx context.Context) (string, error) {
	if err := l.call(ctx); err != nil {
		return "", err
	}
	if time.Now().Before(l.busyUntil()) {
		return "another", nil
	}
	return "", ErrNotFound
}

func (l *lock) Lock(string) Lock {
	take := func(ctx context.Context) error {
		if err := l.call(ctx); err != nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.free = time.Now().Add(2 * ttl)
		return nil
	}
	return Lock{
		TTL: ttl, Retry: time.Second,
		Acquire: func(ctx context.Context) (bool, error) { err := take(ctx); return err == nil, err },
		Renew: func(ctx context.Context) error {
			if !time.Now().Before(l.busyUntil()) {
				return ErrLost
			}
			l.mu.Lock()
			l.renewals++
			l.mu.Unlock()
			return take(ctx)
		},
		Release: func(ctx context.Context) error {
			err := l.call(ctx)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.released++
			if err == nil {
				l.free = time.Time{}
			}
			return err
		},
	}
}

func (l *lock) set(err error, hangs time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err, l.hangs = err, hangs
}

func (l *lock) busyUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free
}

func TestALeaseIsRenewedThriceInItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{}
		got := leading(t, l, "me")
		time.Sleep(10*ttl + time.Second)
		if got.Lost() || l.renewals != 30 {
			t.Errorf("lost: %t; %d renewals", got.Lost(), l.renewals)
		}
		got.leads(t, "it")
		got.release(t)
		if !got.Lost() || l.released != 1 {
			t.Errorf("%d releases at the store", l.released)
		}
	})
}

// Whatever the store does, the leader knows that its term is over before the store can
// give the lock to another.
func TestTheLeaderKnowsBeforeTheStoreFreesItsLock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		hangs time.Duration
		most  time.Duration
	}{
		"the store refuses":                {ErrUnavailable, 0, ttl},
		"the store hangs":                  {nil, time.Hour, ttl},
		"the store is slow, then refuses":  {ErrUnavailable, 7 * time.Second, ttl},
		"the store says that it is lost":   {ErrLost, 0, ttl / 3},
		"the store forbids the renewal":    {ErrDenied, 0, ttl},
		"the store answers when it's late": {nil, ttl + time.Second, ttl},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &lock{}
				got := leading(t, l, "me")
				time.Sleep(7 * time.Second)
				began := l.busyUntil().Add(-2 * ttl)
				l.set(tc.err, tc.hangs)
				<-got.ended
				if took := time.Since(began); took > tc.most+5*time.Second {
					t.Errorf("it knows after %v", took)
				}
				if !errors.Is(got.cause(), ErrLost) {
					t.Errorf("the term ended with %v", got.cause())
				}
				if !time.Now().Before(l.busyUntil()) {
					t.Error("it knows when another may have the lock already")
				}
				fails(t, "check", got.Check(t.Context()), ErrLost)
				// A late release could free the lock of the next holder.
				if err := <-got.err; err != nil || l.released != 0 {
					t.Errorf("lead: %v; %d releases at the store", err, l.released)
				}
			})
		})
	}
}

func TestAShortSilenceLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{}
		got := leading(t, l, "me")
		for range 5 {
			l.set(ErrUnavailable, 0)
			time.Sleep(ttl / 2)
			l.set(nil, 0)
			time.Sleep(ttl / 2)
		}
		got.leads(t, "it")
		got.release(t)
	})
}

func TestACheckWhoseAnswerComesTooLateFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{}
		got := leading(t, l, "me")
		l.set(nil, ttl+time.Second) // renewals hang as well
		fails(t, "check", got.Check(t.Context()), ErrLost)
		if err := <-got.err; err != nil {
			t.Error(err)
		}
	})
}

func TestACandidateWaitsWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{free: time.Now().Add(time.Minute), err: ErrUnavailable}
		time.AfterFunc(30*time.Second, func() { l.set(nil, time.Hour) })
		time.AfterFunc(50*time.Second, func() { l.set(nil, 0) })
		began := time.Now()
		got := leading(t, l, "me")
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("it took %v", took)
		}
		got.release(t)
	})
}

func TestACandidateGivesUpWhereWaitingDoesNotHelp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails(t, "lead", <-candidate(t, &lock{err: ErrDenied}, "me").err, ErrDenied)
	})
}

// The context that ends a term may be the reason: the release has its own.
func TestATermEndsWithItsContextAndReleasesTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{}
		got := leading(t, l, "me")
		got.stop()
		if err := <-got.err; err != nil || !l.busyUntil().IsZero() || !errors.Is(got.cause(), context.Canceled) {
			t.Errorf("lead: %v; busy until %v; cause %v", err, l.busyUntil(), got.cause())
		}
		wanted := errors.New("the term failed")
		err := Lead(t.Context(), l, "me", silentLog(), func(ctx context.Context, _ *Lease) error { return errors.Join(ctx.Err(), wanted) })
		fails(t, "lead", err, wanted)
		if !l.busyUntil().IsZero() {
			t.Error("the lock is not free")
		}
	})
}
