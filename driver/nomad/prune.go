package nomad

import (
	"cmp"
	"context"
	"errors"
	"time"

	"pitchpipe/driver"
)

const (
	// keepRecords is how long the record of a job is kept that has ended and that Nomad has
	// forgotten. What it taught the controller keeps elsewhere.
	keepRecords = 30 * 24 * time.Hour
	// lostAfter is how long Nomad may not know a job before it counts as lost.
	lostAfter = 24 * time.Hour
	// pruneEvery is how often records are looked through.
	pruneEvery = 6 * time.Hour
)

// missing notes that Nomad no longer knows a job on record whose end was not seen: it was
// purged. After a day of that it counts as lost, and is asked for no more.
func (d *Driver) missing(ctx context.Context, id driver.JobID) error {
	if !d.sees(place(id).namespace) {
		return nil // Nomad was not asked
	}
	defer d.hold(id)()
	r, err := d.load(ctx, id)
	if err != nil || r == nil || r.Own == nil || r.Last != nil {
		return err
	}
	if r.Index == 0 && len(r.Attempts) == 0 {
		return nil // it was never there: a repeated request makes it
	}
	switch now := d.cfg.Now(); {
	case r.Missing.IsZero():
		r.Missing = now
	case now.Sub(r.Missing) < lostAfter:
		return nil
	default:
		last := d.cancelled(r, "Nomad has forgotten it, and how it ended is unknown")
		last.State, last.Ended = driver.Lost, r.Missing
		for _, k := range r.Attempts {
			last.Attempts = append(last.Attempts, k.Attempt)
		}
		last.Attempt = len(last.Attempts)
		r.Last = &last
	}
	if err := d.save(ctx, r); err != nil && !errors.Is(err, ErrNotLeading) {
		return err
	}
	return nil
}

// prune deletes, now and then, the records of jobs that ended long ago and that Nomad does
// not know any more. A request that is repeated then makes another job.
func (d *Driver) prune(ctx context.Context) {
	d.mu.Lock()
	due := d.cfg.Now().Sub(d.pruned) >= pruneEvery
	if due {
		d.pruned = d.cfg.Now()
	}
	d.mu.Unlock()
	if !due || d.c.mayAct(ctx) != nil {
		return
	}
	for _, id := range d.which(func(brief) bool { return true }) {
		if err := d.pruneOne(ctx, id); err != nil && ctx.Err() == nil {
			d.cfg.Logger.Warn("an old record is not pruned", "job", string(id), "error", err)
		}
	}
}

// pruneOne deletes the record of a job where that is due.
func (d *Driver) pruneOne(ctx context.Context, id driver.JobID) error {
	if d.peek(id).seen != (seen{}) {
		return nil // it is listed
	}
	defer d.hold(id)()
	r, err := d.load(ctx, id)
	if err != nil || r == nil {
		return err
	}
	over := r.Submitted // of a request that never made a job
	switch {
	case r.Last != nil:
		over = cmp.Or(r.Last.Ended, r.Last.Submitted, over)
	case r.Index != 0 || len(r.Attempts) > 0:
		return nil
	}
	if over.IsZero() || d.cfg.Now().Sub(over) < keepRecords {
		return nil
	}
	// The list that it is not on may be old.
	if _, err := d.c.job(ctx, place(id)); !errors.Is(err, driver.ErrNotFound) {
		return err
	}
	if err := d.cfg.Journal.Delete(ctx, recordName(id)); err != nil {
		return err
	}
	d.cfg.Logger.Info("an old record is pruned", "job", string(id))
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.jobs, id)
	return nil
}
