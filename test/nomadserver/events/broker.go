package events

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// ErrClosed means that a subscription ended: it fell behind, or everybody was cut off.
var ErrClosed = errors.New("subscription closed by server, client should resubscribe")

// Event is one row that changed.
type Event struct {
	Topic      string
	Type       string
	Key        string
	Namespace  string   `json:",omitempty"`
	FilterKeys []string // other names under which it is found
	Index      uint64
	Payload    any
}

// Batch is what became visible together.
type Batch struct {
	Index  uint64
	Events []Event
}

// Broker keeps the latest batches.
type Broker struct {
	mu    sync.Mutex
	size  int
	kept  []Batch
	first uint64 // number of kept[0], counted from 0
	cut   uint64 // subscriptions opened before this many cuts are over
	news  chan struct{}
}

// New makes a broker that keeps as many batches as size.
func New(size int) *Broker { return &Broker{size: size, news: make(chan struct{})} }

// Publish adds a batch.
func (b *Broker) Publish(batch Batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, batch)
	if over := len(b.kept) - b.size; over > 0 {
		b.kept = slices.Delete(b.kept, 0, over)
		b.first += uint64(over)
	}
	b.wake()
}

// Cut ends every subscription.
func (b *Broker) Cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cut++
	b.wake()
}

func (b *Broker) wake() {
	close(b.news)
	b.news = make(chan struct{})
}

// Subscription reads batches one after the other. It has one user.
type Subscription struct {
	b    *Broker
	next uint64
	cut  uint64
	want func(Event) bool
}

// Subscribe starts at the oldest batch kept whose index is at least from, so at the
// oldest of all where from is 0 or was dropped long ago; where from lies beyond
// everything that was seen, at the newest.
func (b *Broker) Subscribe(from uint64, want func(Event) bool) *Subscription {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Subscription{b: b, cut: b.cut, want: want, next: b.first + uint64(len(b.kept))}
	if len(b.kept) == 0 {
		return s
	}
	at := slices.IndexFunc(b.kept, func(k Batch) bool { return k.Index >= from })
	if at < 0 {
		at = len(b.kept) - 1
	}
	s.next = b.first + uint64(at)
	return s
}

// Next waits for the next batch with an event that is wanted, and returns those. It is
// ErrClosed when the subscription is over.
func (s *Subscription) Next(ctx context.Context) (Batch, error) {
	for {
		s.b.mu.Lock()
		news := s.b.news
		var batch Batch
		have, over := false, s.cut != s.b.cut || s.next < s.b.first
		if at := s.next - s.b.first; !over && at < uint64(len(s.b.kept)) {
			batch, have = s.b.kept[at], true
			s.next++
		}
		s.b.mu.Unlock()
		if over {
			return Batch{}, ErrClosed
		}
		if !have {
			select {
			case <-ctx.Done():
				return Batch{}, ctx.Err()
			case <-news:
			}
			continue
		}
		out := Batch{Index: batch.Index}
		for _, e := range batch.Events {
			if s.want(e) {
				out.Events = append(out.Events, e)
			}
		}
		if len(out.Events) > 0 {
			return out, nil
		}
	}
}
