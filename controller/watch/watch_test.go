package watch_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"pitchpipe/controller/watch"
	"pitchpipe/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, q *watch.Queue) driver.JobID {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id, err := q.Get(ctx)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return id
}

func empty(t *testing.T, q *watch.Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if id, err := q.Get(ctx); err == nil {
		t.Fatalf("got %s, want nothing", id)
	}
}

func TestAKeyIsHandedOutOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := watch.NewQueue()
		q.Add("a")
		q.Add("a")
		q.Add("b")
		if got := []driver.JobID{get(t, q), get(t, q)}; got[0] != "a" || got[1] != "b" {
			t.Errorf("got %v, want a then b", got)
		}
		empty(t, q)
	})
}

func TestAKeyAddedWhileBusyComesBackAfterDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := watch.NewQueue()
		q.Add("a")
		get(t, q)
		q.Add("a")
		empty(t, q)
		q.Done("a")
		if got := get(t, q); got != "a" {
			t.Errorf("got %s, want a", got)
		}
	})
}

func TestTheEarlierOfTwoDelaysCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := watch.NewQueue()
		start := time.Now()
		q.AddAfter("a", time.Hour)
		q.AddAfter("a", time.Second)
		q.AddAfter("a", 2*time.Second)
		get(t, q)
		if got := time.Since(start); got != time.Second {
			t.Errorf("came after %v, want 1s", got)
		}
		q.Done("a")
		time.Sleep(2 * time.Hour)
		empty(t, q)
	})
}

func TestAClosedQueueForgetsItsTimers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := watch.NewQueue()
		q.AddAfter("a", time.Second)
		q.Close()
		q.Add("b")
		q.AddAfter("c", time.Second)
		time.Sleep(time.Minute)
		empty(t, q)
	})
}

// source is a stream that breaks, with a list that is always right.
type source struct {
	mu      sync.Mutex
	streams []chan driver.Event
	opened  int
	fail    error
	state   driver.State
	detail  string
}

func (s *source) Watch(context.Context) (<-chan driver.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	if s.fail != nil {
		return nil, s.fail
	}
	ch := make(chan driver.Event, 8)
	s.streams = append(s.streams, ch)
	return ch, nil
}

func (s *source) List(context.Context) ([]driver.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return nil, s.fail
	}
	return []driver.Job{{ID: "listed", State: s.state, Detail: s.detail}}, nil
}

func (s *source) set(state driver.State, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.detail = state, detail
}

func TestAResyncLooksAtWhatRunsOrIsNewAndAtAllNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{state: driver.Pending}
		q := watch.NewQueue()
		ctx, cancel := context.WithCancel(t.Context())
		w := &watch.Watcher{Source: s, Queue: q, Resync: time.Minute, Log: slog.New(slog.DiscardHandler)}
		var wg sync.WaitGroup
		wg.Go(func() { _ = w.Run(ctx) })
		looked := func() { q.Done(get(t, q)) }
		looked() // when the stream was opened
		next := func() { time.Sleep(time.Minute); synctest.Wait() }
		next()
		empty(t, q) // it waits as before
		s.set(driver.Pending, "held")
		next()
		looked() // the list says something new
		s.set(driver.Running, "")
		for range 3 {
			next()
			looked() // it runs
		}
		s.set(driver.Succeeded, "")
		next()
		looked()
		for range 3 {
			next()
			empty(t, q)
		}
		next()
		looked() // the tenth list
		cancel()
		wg.Wait()
	})
}

func TestABrokenStreamIsOpenedAgainAndTheListFillsTheGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{state: driver.Running}
		q := watch.NewQueue()
		ctx, cancel := context.WithCancel(t.Context())
		w := &watch.Watcher{Source: s, Queue: q, Resync: time.Hour, Log: slog.New(slog.DiscardHandler)}
		var wg sync.WaitGroup
		wg.Go(func() { _ = w.Run(ctx) })
		if got := get(t, q); got != "listed" {
			t.Fatalf("got %s, want listed", got)
		}
		q.Done("listed")
		synctest.Wait()
		s.mu.Lock()
		s.streams[0] <- driver.Event{Job: "event"}
		s.mu.Unlock()
		if got := get(t, q); got != "event" {
			t.Fatalf("got %s, want event", got)
		}
		q.Done("event")
		s.mu.Lock()
		close(s.streams[0])
		s.mu.Unlock()
		if got := get(t, q); got != "listed" {
			t.Fatalf("after the break: got %s, want listed", got)
		}
		q.Done("listed")
		time.Sleep(90 * time.Minute)
		if got := get(t, q); got != "listed" {
			t.Fatalf("after the resync: got %s, want listed", got)
		}
		cancel()
		wg.Wait()
	})
}

func TestAnUnreachableSchedulerIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{fail: errors.New("down")}
		q := watch.NewQueue()
		ctx, cancel := context.WithCancel(t.Context())
		var log bytes.Buffer
		w := &watch.Watcher{Source: s, Queue: q, Retry: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))}
		var wg sync.WaitGroup
		wg.Go(func() { _ = w.Run(ctx) })
		time.Sleep(time.Minute + 10*time.Second + time.Millisecond)
		s.mu.Lock()
		if s.opened < 70 {
			t.Errorf("opened %d times in 70 s, want a try a second", s.opened)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 2 {
			t.Errorf("%d warnings in 70 s, want one a minute:\n%s", n, log.String())
		}
		s.fail = nil
		s.mu.Unlock()
		if got := get(t, q); got != "listed" {
			t.Errorf("got %s, want listed", got)
		}
		cancel()
		wg.Wait()
	})
}
