package slurm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
)

// Get returns one job: as slurmctld has it, as it was seen last where slurmctld
// has forgotten it, or as the accounting remembers it. While a watch runs, a job
// about which nothing has changed since is not read again.
func (d *Driver) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	if job, ok := d.recall(id); ok {
		return job, nil
	}
	defer d.serial(id)()
	if job, ok := d.recall(id); ok {
		return job, nil
	}
	now, r, err := d.latest(ctx, id)
	if errors.Is(err, driver.ErrNotFound) && number(id) {
		return d.past(ctx, id)
	}
	if err != nil {
		return driver.Job{}, fmt.Errorf("get: %w", err)
	}
	if err := d.settle(ctx, now.job, r); err != nil {
		return driver.Job{}, fmt.Errorf("get: job %s: %w", id, err)
	}
	job, err := d.view(ctx, now.job, r)
	if err == nil && calm(now.job, r) {
		d.keep(id, now, job)
	}
	return job, err
}

// latest is a job of which nothing is on record as the watch read it, and every
// other read anew.
func (d *Driver) latest(ctx context.Context, id driver.JobID) (seen, *Record, error) {
	if s, ok := d.bulk(id); ok && calm(s.job, nil) {
		_, known, err := d.record(id)
		if err == nil && !known {
			_, known, err = d.inherit(s.job)
		}
		if err != nil || !known {
			return s, nil, err
		}
	}
	s := seen{print: d.printed(id), at: time.Now()}
	var r *Record
	var err error
	s.job, r, err = d.observe(ctx, id)
	return s, r, err
}

// calm tells of a job that stays as it was seen until squeue prints another line of
// it: one whose processes are being ended changes with the time, and one that an
// intent is about with every step.
func calm(j parse.Job, r *Record) bool {
	return j.State != "COMPLETING" && (r == nil || r.Moving == nil && r.Next == nil && (r.Late == nil || parse.Running(j.State)) && !r.Delayed)
}
