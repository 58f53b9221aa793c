package slurm

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
)

// seen is what is known of one job. It counts as long as squeue prints the same of
// the job and nothing was done to it here.
type seen struct {
	print  uint64    // of what squeue said before the job was read; 0 = nothing yet
	at     time.Time // when the reading began
	job    parse.Job
	answer *driver.Job // what Get made of it; nil: it was not asked since
}

// hold serialises what changes one job or its record, and returns the release. What
// was seen of the job before does not count any more.
func (d *Driver) hold(id driver.JobID) func() {
	release := d.locks.Hold(string(id))
	d.doubt(id)
	return func() {
		d.doubt(id)
		release()
	}
}

// doubt has the job read anew by whoever asks next; a reading that is under way
// does not count.
func (d *Driver) doubt(id driver.JobID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.seen, id)
	d.doubted[id] = time.Now()
}

// remember takes what was read of a job, unless something was done to it or newer was
// read since the reading began. The caller has d.mu.
func (d *Driver) remember(id driver.JobID, s seen) {
	if s.at.After(d.doubted[id]) && !d.seen[id].at.After(s.at) {
		d.seen[id] = s
	}
}

// recall is the answer of an earlier Get, where it still counts. It is as old as an
// event would be late.
func (d *Driver) recall(id driver.JobID) (driver.Job, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.seen[id]
	if !ok || s.answer == nil || !time.Now().Before(d.until) {
		return driver.Job{}, false
	}
	return s.answer.Clone(), true
}

// bulk is what was read of a job together with others, where it still counts.
func (d *Driver) bulk(id driver.JobID) (seen, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.seen[id]
	return s, ok && time.Now().Before(d.until)
}

// printed is what squeue said of a job last.
func (d *Driver) printed(id driver.JobID) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lines[id]
}

// keep remembers an answer of Get, by what squeue said before the reading began.
func (d *Driver) keep(id driver.JobID, s seen, answer driver.Job) {
	answer = answer.Clone()
	s.answer = &answer
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().Before(d.until) {
		d.remember(id, s)
	}
}

// trust says until when what was seen counts: until the watch would have looked
// again. The zero time has everything read anew.
func (d *Driver) trust(until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = until
}

// trusted reports whether a watch runs that saw the queue lately.
func (d *Driver) trusted() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.until)
}

// print is what reports whether a job has to be looked at. It is never 0.
func (d *Driver) print(l parse.QueueLine) uint64 { return maphash.String(d.hashes, l.Print) | 1 }

// Get returns one job: as slurmctld has it, as it was seen last where slurmctld
// has forgotten it, or as the accounting remembers it. While a watch runs, a job
// about which nothing has changed since is not read again.
func (d *Driver) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	if job, ok := d.recall(id); ok {
		return job, nil
	}
	defer d.locks.Hold(string(id))()
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
