package slurm

import (
	"context"
	"fmt"
	"time"

	"pitchpipe/driver"
)

// maxStart is how long a job that cannot be executed takes to say so.
const maxStart = 10 * time.Second

// Watch asks squeue every Config.Interval and sends an event for each job that
// exists and then for each whose line changed or is gone. The stream breaks, and
// the channel is closed, when squeue fails.
func (d *Driver) Watch(ctx context.Context) (<-chan driver.Event, error) {
	w := watcher{d: d, lines: map[driver.JobID]string{}}
	first, err := w.poll(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	kept, err := d.journal.Jobs()
	if err != nil {
		return nil, fmt.Errorf("watch: %w: %w", driver.ErrTransient, err)
	}
	for _, id := range kept {
		if _, ok := w.lines[id]; !ok {
			first = append(first, id)
		}
	}
	events := make(chan driver.Event)
	go w.run(ctx, first, events)
	return events, nil
}

// watcher compares what squeue says with what it said before.
type watcher struct {
	d     *Driver
	lines map[driver.JobID]string
}

func (w *watcher) run(ctx context.Context, changed []driver.JobID, events chan<- driver.Event) {
	defer close(events)
	ticker := time.NewTicker(w.d.cfg.Interval)
	defer ticker.Stop()
	for {
		for _, id := range changed {
			select {
			case events <- driver.Event{Job: id}:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		var err error
		if changed, err = w.poll(ctx); err != nil {
			if ctx.Err() == nil {
				w.d.cfg.Logger.Warn("the watch breaks", "error", err)
			}
			return
		}
	}
}

// poll returns the jobs whose line changed.
func (w *watcher) poll(ctx context.Context) ([]driver.JobID, error) {
	lines, err := w.d.queue(ctx)
	if err != nil {
		return nil, err
	}
	now := make(map[driver.JobID]string, len(lines))
	var changed []driver.JobID
	for _, l := range lines {
		id := jobID(l.ID, l.ArrayJob, l.ArrayTask)
		now[id] = l.Print
		if w.lines[id] != l.Print {
			changed = append(changed, id)
		}
	}
	for id := range w.lines {
		if _, ok := now[id]; !ok {
			changed = append(changed, id)
		}
	}
	w.lines = now
	return changed, nil
}
