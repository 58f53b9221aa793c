package nomad

import (
	"context"
	"fmt"

	"pitchpipe/driver"
)

// Watch sends an event for each job that is seen and then whenever one may have
// changed. Where Nomad does not answer for a while nothing is missed: the list that it
// gives next is compared with the last.
func (d *Driver) Watch(ctx context.Context) (<-chan driver.Event, error) {
	s, leave := d.informer.subscribe()
	jobs, err := d.all(ctx, true)
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
