package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	now, cost, err := w.activity(ctx)
	w.spent += cost
	before, shown := w.count, w.ahead
	w.count, w.ahead = now, 0
	submitted := 0 // not known
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
		submitted = max(0, now.Submitted-before.Submitted-shown)
		if shown > 0 && submitted == 0 { // a look has shown them, and may have shown more
			w.moved = true
			return nil
		}
	}
	return w.arrivals(ctx, submitted)
}

// restPause is for how long sdiag is asked after slurmrestd did not answer.
const restPause = time.Minute

// activity is what slurmctld counts, with the CPU that asking took. What slurmrestd
// took is not known and not counted; it is less than sdiag's.
func (w *watcher) activity(ctx context.Context) (*parse.Activity, time.Duration, error) {
	if w.d.rest == nil || time.Since(w.restless) < restPause {
		return w.d.activity(ctx)
	}
	a, err := w.d.rest.Activity(ctx)
	if err == nil {
		return &a, 0, nil
	}
	if ctx.Err() != nil {
		return nil, 0, ctx.Err()
	}
	if w.restless.IsZero() {
		w.d.cfg.Logger.Warn("slurmrestd does not answer, so sdiag is asked", "error", err)
	}
	w.restless = time.Now()
	return w.d.activity(ctx)
}

// activity is what sdiag says of it.
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

// arrivals reads the jobs whose numbers were given since the last time. Where it is known
// how many were submitted, the next numbers are theirs; where one of those is not a job's,
// or it is not known, slurmctld is asked which number comes next.
func (w *watcher) arrivals(ctx context.Context, submitted int) []driver.JobID {
	if submitted > news {
		w.moved = true
		return nil
	}
	met, whole := w.read(ctx, w.next, w.next+submitted, true)
	w.met = append(w.met, met...)
	if submitted > 0 && whole {
		w.next += submitted
		return met
	}
	if w.overspent(1) {
		w.moved = true
		return met
	}
	out, cost, err := w.d.paid(ctx, "scontrol", "show", "config")
	w.spent, w.call = w.spent+cost, cost
	var next int
	if err == nil {
		next, err = parse.NextJob(out)
	}
	if err != nil {
		w.d.cfg.Logger.Debug("the number of the next job is not known", "error", err)
		w.moved = true
		return met
	}
	first := w.next
	w.next = next
	if next < first || next-first > news { // numbers came round, or there are too many
		w.moved = true
		return met
	}
	more, _ := w.read(ctx, first, next, false)
	more = slices.DeleteFunc(more, func(id driver.JobID) bool { return slices.Contains(met, id) })
	w.met = append(w.met, more...)
	return append(met, more...)
}

// overspent reports whether so many more calls of scontrol cost more than twice the share
// of a core that looking may: a look at all is due then.
func (w *watcher) overspent(calls int) bool {
	return float64(w.spent-w.cost)+float64(calls)*float64(w.call) > 2*share*float64(time.Since(w.looked))+float64(spare)*float64(w.call)
}

// read reads the jobs of some numbers, and reports whether each of them is a job's. Where
// that is a guess the first that is none ends it.
func (w *watcher) read(ctx context.Context, first, next int, guess bool) (met []driver.JobID, whole bool) {
	if w.overspent(next - first) {
		w.moved = true
		return nil, false
	}
	whole = true
	for n := first; n < next; n++ {
		ids, own, cost, err := w.d.meet(ctx, strconv.Itoa(n))
		w.spent, w.call = w.spent+cost, cost
		met = append(met, ids...)
		switch {
		case err == nil && own:
			continue
		case err == nil: // a task of an array took the number when it began
		case !errors.Is(err, driver.ErrNotFound): // a number may be given to no job
			w.d.cfg.Logger.Debug("a new job cannot be read", "job", n, "error", err)
			w.moved = true
		}
		if whole = false; guess {
			return met, whole
		}
	}
	return met, whole
}

// meet reads a job that squeue has not shown yet, and returns its ids: of a new array
// those of its tasks, and none of a job that is none of ours. Own reports whether the number
// was given to what was submitted, and not to a task that was put aside from its array.
func (d *Driver) meet(ctx context.Context, number string) (ids []driver.JobID, own bool, cost time.Duration, err error) {
	begin := time.Now()
	j, cost, err := d.one(ctx, number)
	if err != nil {
		return nil, false, cost, err
	}
	own = j.ArrayJob == "" || j.ArrayJob == j.ID
	ours := d.ours(j)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !ours {
		d.strangers[number] = begin
		return nil, own, cost, nil
	}
	for _, t := range tasks([]parse.Job{j}) {
		id := nameOf(t)
		ids = append(ids, id)
		d.remember(id, seen{at: begin, job: t})
	}
	return ids, own, cost, nil
}
