package driver

import (
	"context"
	"sync"
)

// Watchers serve Driver.Watch. Events that a reader has not taken yet are merged by job, so
// that a slow reader costs little and loses nothing. The zero value is ready.
type Watchers struct {
	// Broken reports whether the stream breaks at this event; nil = none breaks.
	Broken func(JobID) bool

	mu      sync.Mutex
	readers map[*reader]struct{}
	streams sync.WaitGroup
}

type reader struct {
	waiting []JobID
	in      map[JobID]bool
	wake    chan struct{} // has room for one
	stop    context.CancelFunc
}

// Watch begins a stream with an event for each of the jobs. It ends with ctx or by Close.
func (w *Watchers) Watch(ctx context.Context, jobs []JobID) <-chan Event {
	ctx, stop := context.WithCancel(ctx)
	r := &reader{in: map[JobID]bool{}, wake: make(chan struct{}, 1), stop: stop}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range jobs {
		r.add(id)
	}
	if w.readers == nil {
		w.readers = map[*reader]struct{}{}
	}
	w.readers[r] = struct{}{}
	out := make(chan Event)
	w.streams.Go(func() {
		defer close(out)
		w.stream(ctx, r, out)
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.readers, r)
	})
	return out
}

// Changed sends an event of the job to every reader.
func (w *Watchers) Changed(id JobID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.readers {
		r.add(id)
	}
}

// Close ends every stream and returns when they have ended.
func (w *Watchers) Close() {
	w.mu.Lock()
	for r := range w.readers {
		r.stop()
	}
	w.mu.Unlock()
	w.streams.Wait()
}

func (r *reader) add(id JobID) {
	if !r.in[id] {
		r.in[id] = true
		r.waiting = append(r.waiting, id)
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (w *Watchers) stream(ctx context.Context, r *reader, out chan<- Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		w.mu.Lock()
		ids := r.waiting
		r.waiting = nil
		clear(r.in)
		w.mu.Unlock()
		for _, id := range ids {
			if w.Broken != nil && w.Broken(id) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case out <- Event{Job: id}:
			}
		}
	}
}
