package sim

import (
	"context"

	"pitchpipe/driver"
)

// watcher is one stream of events. Events that wait are merged by job.
type watcher struct {
	wait []driver.JobID
	in   map[driver.JobID]bool
	wake chan struct{} // room for one: there is something to send
}

func (w *watcher) add(id driver.JobID) {
	if w.in[id] {
		return
	}
	w.in[id] = true
	w.wait = append(w.wait, id)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// changed tells all watchers of a job. The caller holds the lock.
func (c *Cluster) changed(j *job) {
	for w := range c.watchers {
		w.add(j.view.ID)
	}
}

// Watch implements driver.Driver. A slow reader costs nothing: what waits for it
// is at most one event for each job.
func (c *Cluster) Watch(ctx context.Context) (<-chan driver.Event, error) {
	var out chan driver.Event
	err := c.do(ctx, OpWatch, "", func() error {
		w := &watcher{in: make(map[driver.JobID]bool), wake: make(chan struct{}, 1)}
		for _, j := range c.jobs {
			w.add(j.view.ID)
		}
		out = make(chan driver.Event)
		c.watchers[w] = struct{}{}
		c.streams.Go(func() { c.stream(ctx, w, out) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// stream sends a watcher's events until its context or the cluster ends.
func (c *Cluster) stream(ctx context.Context, w *watcher, out chan<- driver.Event) {
	defer close(out)
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.quit:
			return
		case <-w.wake:
		}
		c.mu.Lock()
		ids := w.wait
		w.wait = nil
		clear(w.in)
		c.mu.Unlock()
		for _, id := range ids {
			if c.cfg.Faults != nil && c.cfg.Faults(OpEvent, id) != nil {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-c.quit:
				return
			case out <- driver.Event{Job: id}:
			}
		}
	}
}
