package driver

import (
	"context"
	"sync"
	"time"
)

// Watchers serve Driver.Watch. Events that a reader has not taken yet are merged by job, so
// that a slow reader costs little and loses nothing. The zero value is ready.
type Watchers struct {
	// Broken reports whether the stream breaks at this event; nil = none breaks.
	Broken func(JobID) bool

	mu      sync.Mutex
	readers map[*Watcher]struct{}
	streams sync.WaitGroup
}

// Watcher is one who watches: the jobs that may have changed since it took them, each once.
type Watcher struct {
	Wake chan struct{} // has room for one, and one where there are jobs to take

	all     *Watchers
	waiting []JobID
	in      map[JobID]bool
	stop    context.CancelFunc // of its stream
}

// Subscribe begins to watch, until Leave.
func (w *Watchers) Subscribe() *Watcher {
	r := &Watcher{Wake: make(chan struct{}, 1), all: w, in: map[JobID]bool{}, stop: func() {}}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.readers == nil {
		w.readers = map[*Watcher]struct{}{}
	}
	w.readers[r] = struct{}{}
	return r
}

// Leave ends it.
func (r *Watcher) Leave() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	delete(r.all.readers, r)
}

// Watch begins a stream with an event for each of the jobs. It ends with ctx or by Close.
func (w *Watchers) Watch(ctx context.Context, jobs []JobID) <-chan Event {
	r := w.Subscribe()
	r.Add(jobs)
	return r.Stream(ctx)
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

// Add has these jobs looked at.
func (r *Watcher) Add(ids []JobID) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	for _, id := range ids {
		r.add(id)
	}
}

func (r *Watcher) add(id JobID) {
	if !r.in[id] {
		r.in[id] = true
		r.waiting = append(r.waiting, id)
	}
	select {
	case r.Wake <- struct{}{}:
	default:
	}
}

// Take returns the jobs that may have changed since it was called last.
func (r *Watcher) Take() []JobID {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	ids := r.waiting
	r.waiting = nil
	clear(r.in)
	return ids
}

// Stream sends its jobs as events. It leaves, and the channel is closed, with ctx or by Close.
func (r *Watcher) Stream(ctx context.Context) <-chan Event {
	ctx, stop := context.WithCancel(ctx)
	r.all.mu.Lock()
	r.stop = stop
	r.all.mu.Unlock()
	out := make(chan Event)
	r.all.streams.Go(func() {
		defer close(out)
		r.send(ctx, out)
		stop()
		r.Leave()
	})
	return out
}

func (r *Watcher) send(ctx context.Context, out chan<- Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.Wake:
		}
		for _, id := range r.Take() {
			if r.all.Broken != nil && r.all.Broken(id) {
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

// Pause waits so long, or until ctx ends, whose error it returns then.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
