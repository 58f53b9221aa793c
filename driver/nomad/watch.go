package nomad

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"pitchpipe/driver"
)

// sub is one who watches: the jobs that he has to be told of, each once.
type sub struct {
	mu   sync.Mutex
	due  map[driver.JobID]struct{}
	wake chan struct{}
}

func (s *sub) add(id driver.JobID) {
	s.mu.Lock()
	s.due[id] = struct{}{}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *sub) take() []driver.JobID {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Sorted(maps.Keys(s.due))
	clear(s.due)
	return out
}

// subscribe has somebody told of changes until he leaves.
func (e *informer) subscribe() (s *sub, leave func()) {
	s = &sub{due: map[driver.JobID]struct{}{}, wake: make(chan struct{}, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subs[s] = struct{}{}
	return s, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.subs, s)
	}
}

// Watch sends an event for each job that is seen and then whenever one may have
// changed. Where Nomad does not answer for a while nothing is missed: the list that it
// gives next is compared with the last.
func (d *Driver) Watch(ctx context.Context) (<-chan driver.Event, error) {
	s, leave := d.informer.subscribe()
	jobs, err := d.all(func(ns string) ([]listed, error) {
		some, _, err := d.informer.list(ctx, ns, 0)
		return some, err
	})
	if err != nil {
		leave()
		return nil, fmt.Errorf("watch: %w", err)
	}
	for _, l := range jobs {
		s.add(l.id)
	}
	out := make(chan driver.Event)
	d.busy.Go(func() {
		defer close(out)
		defer leave()
		for {
			select {
			case <-ctx.Done():
				return
			case <-d.life.Done():
				return
			case <-s.wake:
			}
			for _, id := range s.take() {
				select {
				case out <- driver.Event{Job: id}:
				case <-ctx.Done():
					return
				case <-d.life.Done():
					return
				}
			}
		}
	})
	return out, nil
}
