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

// doubt makes the next call read the job again; a reading that is under way does not
// count.
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

// recall is what was read of a job, where it still counts, and its last line in squeue.
func (d *Driver) recall(id driver.JobID) (s seen, counts bool, line uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.seen[id]
	return s, ok && time.Now().Before(d.until), d.lines[id]
}

// keep remembers an answer of Get, by what squeue said before the reading began.
func (d *Driver) keep(id driver.JobID, s seen, answer driver.Job) {
	s.answer = new(answer.Clone())
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Now().Before(d.until) {
		d.remember(id, s)
	}
}

// trust says until when what was seen counts: until the watch would have looked
// again. The zero time makes everything be read again.
func (d *Driver) trust(until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.until = until
}

// print is a hash that changes when a job must be looked at. It is never 0.
func (d *Driver) print(l parse.QueueLine) uint64 { return maphash.String(d.hashes, l.Print) | 1 }

// Get returns one job: as slurmctld has it, as it was seen last where slurmctld
// has forgotten it, or as the accounting remembers it. While a watch runs, a job
// about which nothing has changed since is not read again: the answer is as old as an
// event would be late.
func (d *Driver) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	if s, ok, _ := d.recall(id); ok && s.answer != nil {
		return s.answer.Clone(), nil
	}
	defer d.locks.Hold(string(id))()
	now, counts, line := d.recall(id)
	if counts && now.answer != nil {
		return now.answer.Clone(), nil
	}
	var r *Record
	var err error
	fresh := !counts || !calm(now.job, nil)
	if !fresh { // of a job that is not on record the watch has read all
		_, fresh, err = d.entered(now.job)
	}
	if fresh && err == nil {
		now = seen{print: line, at: time.Now()}
		now.job, r, err = d.observe(ctx, id)
	}
	if errors.Is(err, driver.ErrNotFound) && parse.Named(string(id)) {
		return d.past(ctx, id, err)
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

// calm reports whether a job stays as it was seen until squeue prints another line of
// it. One whose processes are being ended changes with the time, and one that an
// intent is about with every step.
func calm(j parse.Job, r *Record) bool {
	return j.State != "COMPLETING" && (r == nil || r.Moving == nil && r.Next == nil && (r.Late == nil || parse.Running(j.State)) && !r.Delayed)
}
