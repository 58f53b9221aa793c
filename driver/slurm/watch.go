package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/exporter/api/progress"
)

const (
	// share is what part of a core looking at the whole queue may cost. Reading new jobs may
	// cost twice that.
	share = 0.01
	// asks is how often slurmctld is asked for the number of the next job, in one
	// Config.Interval.
	asks = 2
	// news is up to how many new jobs are read by their numbers; the next look at the whole
	// queue finds more of them.
	news = 20
	// spare is how many readings of new jobs are free, so that a quiet queue shows them at
	// once.
	spare = 10
	// grace is how long the watch is trusted beyond the time when it should have
	// looked again: squeue takes its time on a busy machine.
	grace = 10 * time.Second
	// pruning is how often the journal is looked through for old records.
	pruning = time.Hour
)

// Watch looks at the queue every Config.Interval and sends an event for each job
// that exists and then for each whose line changed or is gone. Where a look costs
// more than a hundredth of a core it is taken less often; new jobs are read by their
// numbers meanwhile. The stream breaks, and the channel is closed, when squeue fails.
func (d *Driver) Watch(ctx context.Context) (<-chan driver.Event, error) {
	w := &watcher{d: d, pruned: time.Now()}
	first, err := w.look(ctx)
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	kept, err := d.journal.List()
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
	cost   time.Duration  // of CPU, of that look
	spent  time.Duration  // of CPU, on new jobs since then
	call   time.Duration  // of CPU, of the last scontrol for them
	woken  bool           // a hook ran since then
	asked  time.Time      // when slurmctld was last asked for the number of the next job
	next   int            // that number
	met    []driver.JobID // new jobs that were read since the last look
	pruned time.Time
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
		timer := time.NewTimer(w.d.cfg.Interval / asks)
		select {
		case <-timer.C:
		case <-w.hook:
			w.woken = true
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

// due is how long after the last look the next is taken: at the earliest when the last one
// is paid for. A hook saves the rest of the interval.
func (w *watcher) due() time.Duration {
	paid := time.Duration(float64(w.cost) / share)
	if w.woken {
		return paid
	}
	return max(w.d.cfg.Interval-w.slack(), paid)
}

// slack is how much a step may be early.
func (w *watcher) slack() time.Duration { return w.d.cfg.Interval / (2 * asks) }

// step returns the jobs that may have changed.
func (w *watcher) step(ctx context.Context, now time.Time) ([]driver.JobID, error) {
	if now.Sub(w.pruned) >= pruning {
		w.pruned = now
		if err := w.d.prune(now.Add(-w.d.cfg.Keep)); err != nil {
			w.d.cfg.Logger.Warn("old records are not pruned", "error", err)
		}
	}
	switch {
	case now.Sub(w.looked) >= w.due():
		return w.look(ctx)
	case now.Sub(w.asked) < w.slack(): // a hook woke the watch
		return nil, nil
	}
	w.asked = now
	met := w.arrivals(ctx)
	w.met = append(w.met, met...)
	return met, nil
}

func (w *watcher) look(ctx context.Context) ([]driver.JobID, error) {
	w.looked, w.woken = time.Now(), false
	all, err := w.d.survey(ctx)
	if err != nil {
		return nil, err
	}
	w.cost, w.spent, w.next = all.cost, 0, max(w.next, all.next)
	var changed []driver.JobID
	for id, print := range all.lines {
		if w.lines[id] != print {
			changed = append(changed, id)
		}
	}
	for _, id := range append(slices.Collect(maps.Keys(w.lines)), w.met...) { // one that was met may have come and gone between two looks
		if _, ok := all.lines[id]; !ok {
			changed = append(changed, id)
		}
	}
	w.met, w.lines = nil, all.lines
	slices.SortFunc(changed, func(a, b driver.JobID) int { return ordinal(a) - ordinal(b) })
	w.d.trust(time.Now().Add(w.due() + grace))
	return changed, nil
}

// arrivals reads the jobs whose numbers slurmctld gave since it was last asked, and
// returns their ids. What it cannot read, or not now, the next look shows.
func (w *watcher) arrivals(ctx context.Context) []driver.JobID {
	if w.overspent(1) {
		return nil
	}
	out, cost, err := w.d.paid(ctx, "scontrol", "show", "config")
	w.spent, w.call = w.spent+cost, cost
	next, bad := parse.Config(out).NextJob()
	if err = cmp.Or(err, bad); err != nil {
		w.d.cfg.Logger.Debug("the number of the next job is not known", "error", err)
		return nil
	}
	first := w.next
	w.next = next
	if next < first || next-first > news || w.overspent(next-first) { // numbers came round, or there are too many
		return nil
	}
	var met []driver.JobID
	for n := first; n < next; n++ {
		ids, cost, err := w.d.meet(ctx, strconv.Itoa(n))
		w.spent, w.call = w.spent+cost, cost
		met = append(met, ids...)
		if err != nil && !errors.Is(err, driver.ErrNotFound) { // a number may be given to no job
			w.d.cfg.Logger.Debug("a new job cannot be read", "job", n, "error", err)
		}
	}
	return met
}

// overspent reports whether so many more calls of scontrol cost more than new jobs may.
func (w *watcher) overspent(calls int) bool {
	return float64(w.spent)+float64(calls)*float64(w.call) > 2*share*float64(time.Since(w.looked))+float64(spare)*float64(w.call)
}

// meet reads a job that squeue has not shown yet, and returns its ids: for a new array those
// of its tasks, and none for a job that is not ours.
func (d *Driver) meet(ctx context.Context, number string) (ids []driver.JobID, cost time.Duration, err error) {
	begin := time.Now()
	j, cost, err := d.one(ctx, number)
	if err != nil {
		return nil, cost, err
	}
	ours := d.ours(j)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !ours {
		d.strangers[number] = begin
		return nil, cost, nil
	}
	for _, t := range tasks([]parse.Job{j}) {
		id := nameOf(t)
		ids = append(ids, id)
		d.remember(id, seen{at: begin, job: t})
	}
	return ids, cost, nil
}

// wakes sends each time that a file is written, made or touched: the site's hooks
// (PrologSlurmctld, EpilogSlurmctld) do so when a job begins or ends. It only makes
// the next look sooner, so that a hook that is missing or lies costs time and nothing
// else. Without a file, or where no one can watch it, nothing is ever sent.
func wakes(ctx context.Context, file string, log *slog.Logger) <-chan struct{} {
	if file == "" {
		return nil
	}
	touched, err := progress.Touched(ctx, file)
	if err != nil {
		log.Warn("no hook wakes the watch", "file", file, "error", err)
	}
	return touched
}
