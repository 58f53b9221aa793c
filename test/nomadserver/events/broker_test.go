package events_test

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/test/nomadserver/events"
)

func all(events.Event) bool { return true }

func publish(b *events.Broker, indexes ...uint64) {
	for _, i := range indexes {
		b.Publish(events.Batch{Index: i, Events: []events.Event{{Topic: "Job", Index: i}}})
	}
}

func next(t *testing.T, s *events.Subscription) uint64 {
	t.Helper()
	b, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b.Index
}

func TestWhereASubscriptionBegins(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ from, want uint64 }{
		"0 is the oldest held":              {0, 4},
		"dropped ones give the oldest held": {2, 4},
		"an index that is held comes again": {6, 6},
		"a hole gives the next":             {5, 6},
		"a future one gives the newest":     {99, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := events.New(3)
			publish(b, 1, 2, 4, 6, 8)
			if got := next(t, b.Subscribe(tc.from, all)); got != tc.want {
				t.Errorf("it begins at %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWhoFallsBehindIsEnded(t *testing.T) {
	t.Parallel()
	b := events.New(2)
	publish(b, 1)
	s := b.Subscribe(0, all)
	publish(b, 2)
	if got := next(t, s); got != 1 {
		t.Errorf("the first is %d", got)
	}
	publish(b, 3, 4)
	if _, err := s.Next(t.Context()); !errors.Is(err, events.ErrClosed) {
		t.Errorf("%v, want %v", err, events.ErrClosed)
	}
}

func TestACutEndsEverySubscriptionAndNoLaterOne(t *testing.T) {
	t.Parallel()
	b := events.New(2)
	s := b.Subscribe(0, all)
	b.Cut()
	if _, err := s.Next(t.Context()); !errors.Is(err, events.ErrClosed) {
		t.Errorf("%v, want %v", err, events.ErrClosed)
	}
	later := b.Subscribe(0, all)
	publish(b, 1)
	if got := next(t, later); got != 1 {
		t.Errorf("the later one reads %d", got)
	}
}

func TestWithoutNewsItWaitsForItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := events.New(2).Subscribe(0, all)
	cancel()
	if _, err := s.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestASubscriptionSeesEverythingInOrderOrEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := events.New(rapid.IntRange(1, 5).Draw(t, "size"))
		s := b.Subscribe(0, all)
		var made, seen uint64
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "publish") {
				made++
				publish(b, made)
			} else if seen < made {
				batch, err := s.Next(context.Background())
				if errors.Is(err, events.ErrClosed) {
					return
				}
				if err != nil || batch.Index != seen+1 {
					t.Fatalf("%d after %d, %v", batch.Index, seen, err)
				}
				seen = batch.Index
			}
		}
	})
}
