package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"pitchpipe/controller/store"
	"pitchpipe/controller/store/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lock is one lock of a store that keeps it for twice the time to live.
type lock struct {
	mu       sync.Mutex
	ttl      time.Duration
	free     time.Time // from when on another may have it
	renewals []time.Time
	released int
	err      error         // of every call
	hangs    time.Duration // of every call
}

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
		return ctx.Err()
	}
}

func (l *lock) Try(ctx context.Context) (bool, error) {
	if err := l.call(ctx); err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Now().Before(l.free) {
		return false, nil
	}
	l.free = time.Now().Add(2 * l.ttl)
	return true, nil
}

func (l *lock) Renew(ctx context.Context) error {
	if err := l.call(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.free) {
		return store.ErrLost
	}
	l.free = time.Now().Add(2 * l.ttl)
	l.renewals = append(l.renewals, time.Now())
	return nil
}

func (l *lock) Check(ctx context.Context) error { return l.call(ctx) }

func (l *lock) Release(ctx context.Context) error {
	err := l.call(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released++
	if err == nil {
		l.free = time.Time{}
	}
	return err
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

const ttl = 15 * time.Second

func config() lease.Config { return lease.Config{TTL: ttl, Retry: time.Second} }

func isLost(l store.Lease) bool {
	select {
	case <-l.Lost():
		return true
	default:
		return false
	}
}

// take gets a lease of a lock that is free.
func take(t *testing.T, l *lock) *lease.Lease {
	t.Helper()
	got, err := lease.Take(t.Context(), l, config())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestALeaseIsRenewedThriceInItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{ttl: ttl}
		got := take(t, l)
		time.Sleep(10*ttl + time.Second)
		if isLost(got) || got.Check(t.Context()) != nil || len(l.renewals) != 30 {
			t.Errorf("lost: %t; %d renewals", isLost(got), len(l.renewals))
		}
		if err := got.Release(t.Context()); err != nil || !isLost(got) || l.released != 1 {
			t.Errorf("release: %v; %d at the store", err, l.released)
		}
	})
}

// Whatever the store does, who leads knows that it is over before the store can give
// the lock to another.
func TestTheHolderKnowsBeforeTheStoreFrees(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		hangs time.Duration
		most  time.Duration
	}{
		"the store refuses":                 {store.ErrUnavailable, 0, ttl},
		"the store hangs":                   {nil, time.Hour, ttl},
		"the store is slow, then refuses":   {store.ErrUnavailable, 7 * time.Second, ttl},
		"the store says that it is another": {store.ErrLost, 0, ttl / 3},
		"the store forbids it":              {store.ErrDenied, 0, ttl},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &lock{ttl: ttl}
				got := take(t, l)
				time.Sleep(7 * time.Second)
				began := l.busyUntil().Add(-2 * ttl)
				l.set(tc.err, tc.hangs)
				<-got.Lost()
				if took := time.Since(began); took > tc.most+5*time.Second {
					t.Errorf("it knows after %v", took)
				}
				if !time.Now().Before(l.busyUntil()) {
					t.Error("it knows when another may have the lock already")
				}
				if err := got.Check(t.Context()); !errors.Is(err, store.ErrLost) {
					t.Errorf("check: %v", err)
				}
				// A late release might free the lock of the next holder.
				if err := got.Release(t.Context()); err != nil || l.released != 0 {
					t.Errorf("release: %v; %d at the store", err, l.released)
				}
			})
		})
	}
}

func TestAShortSilenceLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{ttl: ttl}
		got := take(t, l)
		for range 5 {
			l.set(store.ErrUnavailable, 0)
			time.Sleep(ttl / 2)
			l.set(nil, 0)
			time.Sleep(ttl / 2)
		}
		if isLost(got) || got.Check(t.Context()) != nil {
			t.Error("it is lost")
		}
		if err := got.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestACheckWhoseAnswerComesTooLateIsNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{ttl: ttl}
		got := take(t, l)
		l.set(nil, ttl+time.Second) // renewals hang as well
		if err := got.Check(t.Context()); !errors.Is(err, store.ErrLost) {
			t.Errorf("check: %v", err)
		}
		if err := got.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWhoWaitsWaitsOnWhileTheStoreIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{ttl: ttl, free: time.Now().Add(time.Minute), err: store.ErrUnavailable}
		time.AfterFunc(30*time.Second, func() { l.set(nil, time.Hour) })
		time.AfterFunc(50*time.Second, func() { l.set(nil, 0) })
		began := time.Now()
		got := take(t, l)
		if took := time.Since(began); took < time.Minute || took > 2*time.Minute {
			t.Errorf("it took %v", took)
		}
		if err := got.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatWaitingDoesNotCureEndsTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{ttl: ttl, err: store.ErrDenied}
		if _, err := lease.Take(t.Context(), l, config()); !errors.Is(err, store.ErrDenied) {
			t.Errorf("take: %v", err)
		}
	})
}

func TestAReleaseThatFailedCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lock{ttl: ttl}
		got := take(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := got.Release(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("release by an ended context: %v", err)
		}
		if err := got.Release(t.Context()); err != nil || !l.busyUntil().IsZero() {
			t.Errorf("release: %v", err)
		}
	})
}

func TestASetReleasesAllAndTakesNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var set lease.Set
		locks := []*lock{{ttl: ttl}, {ttl: ttl}}
		for _, l := range locks {
			if err := set.Add(take(t, l)); err != nil {
				t.Fatal(err)
			}
		}
		if err := set.Close(t.Context()); err != nil || !set.Closed() || locks[0].released+locks[1].released != 2 {
			t.Errorf("close: %v", err)
		}
		late := take(t, &lock{ttl: ttl})
		if err := set.Add(late); !errors.Is(err, store.ErrClosed) {
			t.Errorf("add: %v", err)
		}
		if err := late.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
