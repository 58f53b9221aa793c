package local

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"pitchpipe/driver"
)

// watcher merges what happened since its reader last looked.
type watcher struct {
	mu     sync.Mutex
	ids    []driver.JobID
	ring   chan struct{} // there are ids
	over   chan struct{} // the driver closed
	overIt sync.Once
}

func (w *watcher) add(id driver.JobID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.ids, id) {
		w.ids = append(w.ids, id)
	}
	select {
	case w.ring <- struct{}{}:
	default:
	}
}

func (w *watcher) take() []driver.JobID {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := w.ids
	w.ids = nil
	return ids
}

func (w *watcher) end() { w.overIt.Do(func() { close(w.over) }) }

// Watch sends an event for each job that exists and then for each that changed.
// A slow reader loses nothing: events of one job are merged.
func (d *Driver) Watch(ctx context.Context) (<-chan driver.Event, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("watch: %w", errClosed)
	}
	w := &watcher{ring: make(chan struct{}, 1), over: make(chan struct{})}
	for _, id := range d.order {
		w.add(id)
	}
	d.watchers[w] = struct{}{}
	events := make(chan driver.Event)
	go func() {
		defer close(events)
		defer d.unwatch(w)
		w.pump(ctx, events)
	}()
	return events, nil
}

func (w *watcher) pump(ctx context.Context, events chan<- driver.Event) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.over:
			return
		case <-w.ring:
		}
		for _, id := range w.take() {
			select {
			case events <- driver.Event{Job: id}:
			case <-ctx.Done():
				return
			case <-w.over:
				return
			}
		}
	}
}

func (d *Driver) unwatch(w *watcher) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.watchers, w)
}
