package slurm

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
)

// maxStart is how long a job that cannot be executed takes to say so.
const maxStart = 10 * time.Second

const (
	// share is what part of a core looking at the whole queue may cost.
	share = 0.01
	// truth is how old the last look at the whole queue may become, where another is not
	// dearer than its share.
	truth = 10 * time.Second
	// beats is how often slurmctld is asked what it counted, in one Config.Interval.
	beats = 2
	// grace is how long the watch is trusted beyond the time when it should have
	// looked again: squeue takes its time on a busy machine.
	grace = 10 * time.Second
	// pruning is how often the journal is looked through for old records.
	pruning = time.Hour
)

// Watch looks at the queue every Config.Interval and sends an event for each job
// that exists and then for each whose line changed or is gone. Where a look costs
// more than a hundredth of a core it is taken less often, and new jobs are asked for
// by their numbers meanwhile. The stream breaks, and the channel is closed, when
// squeue fails.
func (d *Driver) Watch(ctx context.Context) (<-chan driver.Event, error) {
	w := &watcher{d: d, pruned: time.Now()}
	first, err := w.look(ctx)
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
	ctx, cancel := context.WithCancel(ctx)
	w.hook = wakes(ctx, d.cfg.Wake, d.cfg.Logger)
	go func() {
		defer cancel() // of a watch that broke nothing stays
		w.run(ctx, first, events)
	}()
	return events, nil
}

// watcher compares what squeue says with what it said before.
type watcher struct {
	d     *Driver
	hook  <-chan struct{} // a job began or ended
	lines map[driver.JobID]uint64

	looked time.Time      // when the last look at the whole queue began
	cost   time.Duration  // of CPU, of that look's squeue alone
	spent  time.Duration  // of CPU, since then and with it
	call   time.Duration  // of CPU, of the last scontrol that read one job or the configuration
	moved  bool           // something happened since then
	woken  bool           // and a hook said so
	next   int            // number that no job had then
	ahead  int            // how many numbers were given since count, by what looks showed
	met    []driver.JobID // since then, by their numbers
	count  *parse.Activity
	beaten time.Time // when that was asked last

	restless time.Time // when slurmrestd did not answer last
	pruned   time.Time
}

func (w *watcher) run(ctx context.Context, changed []driver.JobID, events chan<- driver.Event) {
	defer close(events)
	defer w.d.trust(time.Time{})
	for {
		for _, id := range changed {
			select {
			case events <- driver.Event{Job: id}:
			case <-ctx.Done():
				return
			}
		}
		timer := time.NewTimer(w.pause(time.Now()))
		select {
		case <-timer.C:
		case <-w.hook:
			w.moved, w.woken = true, true
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
		var err error
		if changed, err = w.step(ctx, time.Now()); err != nil {
			if ctx.Err() == nil {
				w.d.cfg.Logger.Warn("the watch breaks", "error", err)
			}
			return
		}
	}
}

// dear reports whether a look at the whole queue costs too much to be taken every
// time.
func (w *watcher) dear() bool {
	return float64(w.cost) > share*float64(w.d.cfg.Interval)
}

// due is how long after the last look the next is taken where something happened.
// A hook's word saves the rest of the interval.
func (w *watcher) due() time.Duration {
	paid := min(w.limit(), time.Duration(float64(w.spent)/share))
	if w.woken {
		return paid
	}
	return max(w.d.cfg.Interval, paid)
}

// limit is how long after the last look the next is taken at the latest: where
// nothing happened a look is worth half of what it may cost.
func (w *watcher) limit() time.Duration {
	paid := time.Duration(float64(w.cost) / share)
	return max(w.d.cfg.Interval, paid, min(truth, 2*paid))
}

// pause is until the next step. Between two looks new jobs are asked for, unless
// looks follow each other closely anyway.
func (w *watcher) pause(now time.Time) time.Duration {
	if w.dear() || w.d.cfg.Interval >= time.Second {
		return w.d.cfg.Interval / beats
	}
	return max(0, w.d.cfg.Interval-now.Sub(w.looked))
}

// step returns the jobs that may have changed.
func (w *watcher) step(ctx context.Context, now time.Time) ([]driver.JobID, error) {
	if now.Sub(w.pruned) >= pruning {
		w.pruned = now
		if err := w.d.prune(now.Add(-w.d.cfg.Keep)); err != nil {
			w.d.cfg.Logger.Warn("old records are not pruned", "error", err)
		}
	}
	age := now.Sub(w.looked)
	cheap := !w.dear() && age+w.d.cfg.Interval/(2*beats) >= w.d.cfg.Interval
	if cheap || age >= w.limit() || w.moved && age >= w.due() {
		return w.look(ctx)
	}
	if now.Sub(w.beaten) < w.d.cfg.Interval/(2*beats) {
		return nil, nil // a hook woke the watch
	}
	w.beaten = now
	return w.beat(ctx), nil
}

// look looks at the whole queue.
func (w *watcher) look(ctx context.Context) ([]driver.JobID, error) {
	w.looked, w.moved, w.woken = time.Now(), false, false
	all, err := w.d.survey(ctx)
	if err != nil {
		return nil, err
	}
	next := max(w.next, all.next)
	w.ahead += next - w.next
	w.cost, w.spent, w.next = all.queue, all.spent, next
	var changed []driver.JobID
	for id, print := range all.lines {
		if w.lines[id] != print {
			changed = append(changed, id)
		}
	}
	for id := range w.lines {
		if _, ok := all.lines[id]; !ok {
			changed = append(changed, id)
		}
	}
	for _, id := range w.met { // it came and went between two looks
		if _, ok := all.lines[id]; !ok {
			changed = append(changed, id)
		}
	}
	w.met = nil
	w.lines = all.lines
	slices.SortFunc(changed, func(a, b driver.JobID) int { return ordinal(a) - ordinal(b) })
	w.d.trust(time.Now().Add(w.limit() + grace))
	return changed, nil
}
