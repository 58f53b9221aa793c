package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pitchpipe/controller/store"
)

func runLead(t *testing.T, target Target) {
	for name, test := range map[string]func(t *testing.T, target Target){
		"one leads at a time and the next after its release":          takeover,
		"the leader is named as long as there is one":                 named,
		"a lease stands while it is renewed":                          stands,
		"who waits stops waiting with its context":                    stopsWaiting,
		"a lease outlives the context that it was got by":             outlives,
		"a release with a fresh context works after all others ended": freshRelease,
		"a released lease is lost and can be released again":          released,
		"closing the store releases its leases":                       closing,
		"two names are led at the same time":                          twoNames,
		"values can be written by who does not lead":                  othersWrite,
		"of many contenders one leads at any moment":                  contenders,
		"a leader that went silent is lost and another takes over":    silentLeader,
		"a leader that could be heard again in time goes on":          shortSilence,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, target)
		})
	}
}

func lead(t *testing.T, s store.Store, name, holder string) store.Lease {
	t.Helper()
	l, err := s.Lead(short(t), name, holder)
	if err != nil {
		t.Fatalf("%s does not get to lead %s: %v", holder, name, err)
	}
	return l
}

func leads(t *testing.T, l store.Lease, who string) {
	t.Helper()
	if err := l.Check(t.Context()); err != nil {
		t.Errorf("%s does not lead: %v", who, err)
	}
	select {
	case <-l.Lost():
		t.Errorf("%s is told that its leadership is lost", who)
	default:
	}
}

// lost waits until the lease says that it is.
func lost(t *testing.T, l store.Lease, who string) {
	t.Helper()
	select {
	case <-l.Lost():
	case <-time.After(patience):
		t.Fatalf("%s is not told that its leadership is lost", who)
	}
	fails(t, who+" checks its lease", l.Check(t.Context()), store.ErrLost)
}

func release(t *testing.T, l store.Lease) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("release: %v", err)
	}
}

// waiting begins to wait for the leadership of "name" and returns what came of it.
func waiting(ctx context.Context, s store.Store, holder string) <-chan result {
	out := make(chan result, 1)
	go func() {
		l, err := s.Lead(ctx, "name", holder)
		out <- result{l, err}
	}()
	return out
}

type result struct {
	lease store.Lease
	err   error
}

func (r result) must(t *testing.T) store.Lease {
	t.Helper()
	if r.err != nil {
		t.Fatalf("lead: %v", r.err)
	}
	return r.lease
}

func takeover(t *testing.T, target Target) {
	b := target.New(t)
	first := lead(t, client(t, b), "name", "first")
	next := waiting(short(t), client(t, b), "second")
	leads(t, first, "the first")
	select {
	case r := <-next:
		t.Fatalf("a second leads beside the first: %v", r.err)
	case <-time.After(300 * time.Millisecond): // it may pass too early, and never fail so
	}
	leads(t, first, "the first")
	release(t, first)
	second := (<-next).must(t)
	leads(t, second, "the second")
	fails(t, "the first checks its lease", first.Check(t.Context()), store.ErrLost)
	release(t, first) // must not take it from the second
	leads(t, second, "the second, after another release by the first,")
	release(t, second)
}

func named(t *testing.T, target Target) {
	b := target.New(t)
	asks := client(t, b)
	_, err := asks.Leader(t.Context(), "deep/name")
	fails(t, "before anybody led", err, store.ErrNotFound)
	for _, holder := range []string{"node1 (pid 7), from 10:00", "ü", "n"} {
		l := lead(t, client(t, b), "deep/name", holder)
		if got, err := asks.Leader(t.Context(), "deep/name"); err != nil || got != holder {
			t.Errorf("the leader is %q, %v; want %q", got, err, holder)
		}
		release(t, l)
		_, err = asks.Leader(t.Context(), "deep/name")
		fails(t, "after the release", err, store.ErrNotFound)
	}
}

func stands(t *testing.T, target Target) {
	b := target.New(t)
	l := lead(t, client(t, b), "name", "me")
	other := waiting(short(t), client(t, b), "other")
	for range 20 {
		leads(t, l, "the leader")
		time.Sleep(50 * time.Millisecond) // the longer the more renewals are seen
	}
	release(t, l)
	release(t, (<-other).must(t))
}

func stopsWaiting(t *testing.T, target Target) {
	b := target.New(t)
	l := lead(t, client(t, b), "name", "me")
	ctx, cancel := context.WithCancel(t.Context())
	s := client(t, b)
	other := waiting(ctx, s, "other")
	cancel()
	select {
	case r := <-other:
		fails(t, "who waited", r.err, context.Canceled)
	case <-time.After(patience):
		t.Fatal("it goes on waiting")
	}
	leads(t, l, "the leader")
	release(t, l)
	release(t, lead(t, client(t, b), "name", "third")) // nothing of the one who waited is left
}

func outlives(t *testing.T, target Target) {
	b := target.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	l, err := client(t, b).Lead(ctx, "name", "me")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	leads(t, l, "the leader")
	release(t, l)
}

func freshRelease(t *testing.T, target Target) {
	b := target.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	l, err := client(t, b).Lead(ctx, "name", "me")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := l.Check(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a check by an ended context: %v", err)
	}
	fresh, done := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer done()
	if err := l.Release(fresh); err != nil {
		t.Errorf("release: %v", err)
	}
	release(t, lead(t, client(t, b), "name", "next"))
}

func released(t *testing.T, target Target) {
	l := lead(t, open(t, target), "name", "me")
	release(t, l)
	lost(t, l, "who released")
	release(t, l)
}

func closing(t *testing.T, target Target) {
	b := target.New(t)
	s := client(t, b)
	l := lead(t, s, "name", "me")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.Lost():
	default:
		t.Error("the lease of a closed store is not lost")
	}
	release(t, lead(t, client(t, b), "name", "next"))
}

func twoNames(t *testing.T, target Target) {
	b := target.New(t)
	s := client(t, b)
	one := lead(t, s, "one", "me")
	two := lead(t, client(t, b), "one/two", "you")
	leads(t, one, "the leader of one")
	leads(t, two, "the leader of two")
	release(t, one)
	leads(t, two, "the leader of two")
	release(t, two)
}

func othersWrite(t *testing.T, target Target) {
	b := target.New(t)
	l := lead(t, client(t, b), "name", "me")
	s := client(t, b).Store
	v := put(t, s, "name", []byte("a value under the same key"), 0)
	put(t, s, "name", []byte("another"), v)
	leads(t, l, "the leader")
	entries, err := s.Keys(t.Context(), "")
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the lock there is %v, %v; want one key", entries, err)
	}
	release(t, l)
}

// contenders lead, release and lead again at random moments; whoever passes a check
// does something that must not overlap.
func contenders(t *testing.T, target Target) {
	b := target.New(t)
	rounds := 8
	if target.Small {
		rounds = 3
	}
	var inside, overlaps atomic.Int32
	var group sync.WaitGroup
	for i := range 3 {
		s := client(t, b).Store
		rng := rand.New(rand.NewPCG(11, uint64(i)))
		group.Go(func() {
			for round := range rounds {
				l, err := s.Lead(short(t), "name", fmt.Sprintf("%d", i))
				if err != nil {
					t.Errorf("contender %d, round %d: %v", i, round, err)
					return
				}
				for range 1 + rng.IntN(3) {
					if err := l.Check(t.Context()); err != nil {
						break
					}
					if inside.Add(1) > 1 {
						overlaps.Add(1)
					}
					time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
					inside.Add(-1)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Errorf("contender %d, round %d: release: %v", i, round, err)
				}
			}
		})
	}
	group.Wait()
	if n := overlaps.Load(); n > 0 {
		t.Errorf("two led at the same time, %d times", n)
	}
}

func silentLeader(t *testing.T, target Target) {
	if target.NoSilence != "" {
		t.Skip(target.NoSilence)
	}
	b := target.New(t)
	silent := client(t, b)
	first := lead(t, silent, "name", "first")
	leads(t, first, "the first")
	restore := silent.Silence()
	next := waiting(short(t), client(t, b), "second")
	var second store.Lease
	select {
	case r := <-next:
		second = r.must(t)
	case <-time.After(patience):
		t.Fatal("nobody takes over from a silent leader")
	}
	// The first knew before the second led, without an answer by the store.
	select {
	case <-first.Lost():
	default:
		t.Error("a second leads, and the first believes that it does")
	}
	leads(t, second, "the second")
	restore()
	lost(t, first, "the first")
	release(t, first)
	leads(t, second, "the second, after the first came back,")
	release(t, second)
}

func shortSilence(t *testing.T, target Target) {
	if target.NoSilence != "" {
		t.Skip(target.NoSilence)
	}
	b := target.New(t)
	s := client(t, b)
	l := lead(t, s, "name", "me")
	restore := s.Silence()
	// Nothing of the lease can be known while the store is silent, except by its own
	// clock: it must not be used.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := l.Check(ctx); err == nil {
		t.Error("a check passes that the store did not answer")
	}
	restore()
	err := l.Check(t.Context())
	select {
	case <-l.Lost(): // a machine so slow that it was too long
	default:
		if err != nil {
			t.Errorf("after a short silence: %v", err)
		}
	}
	release(t, l)
}
