package slurm

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
)

// news is up to how many new jobs are asked for by their numbers; where there are
// more the next look at the whole queue finds them.
const news = 20

// spare is how many readings of new jobs cost nothing yet, so that a quiet queue shows
// them at once.
const spare = 10

// beat asks what costs little: whether slurmctld counted anything since the last
// time. It returns the new jobs, and notes that something moved where there is more.
// A question that is not answered is a reason to look at the whole queue.
func (w *watcher) beat(ctx context.Context) []driver.JobID {
	now, cost, err := w.d.activity(ctx)
	w.spent += cost
	before := w.count
	w.count = now
	switch {
	case err != nil:
		w.d.cfg.Logger.Debug("what slurmctld counts is not known", "error", err)
		w.count, w.moved = nil, true
	case before != nil && *now == *before:
		return nil
	case before == nil || now.Since != before.Since || now.Submitted < before.Submitted:
		w.moved = true
	case now.Submitted == before.Submitted:
		w.moved = true
		return nil
	default:
		quiet := *before
		quiet.Submitted = now.Submitted
		w.moved = w.moved || quiet != *now
	}
	return w.arrivals(ctx)
}

// activity is what slurmctld counts.
func (d *Driver) activity(ctx context.Context) (*parse.Activity, time.Duration, error) {
	out, cost, err := d.paid(ctx, "sdiag")
	if err != nil {
		return nil, cost, err
	}
	a, err := parse.Diagnostics(out)
	if err != nil {
		return nil, cost, fmt.Errorf("%w: %w", driver.ErrTransient, err)
	}
	return &a, cost, nil
}

// arrivals reads the jobs whose numbers were given since the last time.
func (w *watcher) arrivals(ctx context.Context) []driver.JobID {
	out, cost, err := w.d.paid(ctx, "scontrol", "show", "config")
	w.spent += cost
	var next int
	if err == nil {
		next, err = parse.NextJob(out)
	}
	if err != nil {
		w.d.cfg.Logger.Debug("the number of the next job is not known", "error", err)
		w.moved = true
		return nil
	}
	first := w.next
	w.next = next
	if next < first || next-first > news { // numbers came round, or there are too many
		w.moved = true
		return nil
	}
	// Where reading them costs more than twice its share a look at all is due.
	if calls := next - first; float64(w.spent-w.cost)+float64(calls)*float64(cost) > 2*share*float64(time.Since(w.looked))+float64(spare)*float64(cost) {
		w.moved = true
		return nil
	}
	var met []driver.JobID
	for n := first; n < next; n++ {
		ids, cost, err := w.d.meet(ctx, strconv.Itoa(n))
		w.spent += cost
		switch {
		case err == nil:
			met = append(met, ids...)
		case !errors.Is(err, driver.ErrNotFound): // a number may be given to no job
			w.d.cfg.Logger.Debug("a new job cannot be read", "job", n, "error", err)
			w.moved = true
		}
	}
	w.met = append(w.met, met...)
	return met
}

// meet reads a job that squeue has not shown yet, and returns its ids: of a new array
// those of its tasks, and none of a job that is none of ours.
func (d *Driver) meet(ctx context.Context, number string) ([]driver.JobID, time.Duration, error) {
	begin := time.Now()
	j, cost, err := d.one(ctx, number)
	if err != nil {
		return nil, cost, err
	}
	var ids []driver.JobID
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
