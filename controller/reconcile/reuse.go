package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"pitchpipe/driver"
)

// anew reports whether the id of a job whose story is over belongs to another job by now,
// and keeps the story under an id of its own then, so that another can begin. A
// scheduler that cannot be asked is asked at the next event.
func (p *reconciliation) anew(ctx context.Context) (bool, error) {
	job, err := p.cfg.Scheduler.Get(ctx, p.rec.Job)
	if err != nil || !another(p.rec, job) {
		return false, nil //nolint:nilerr // what is over needs nothing
	}
	p.cfg.Log.Info("the id of a job that is over is another's", "job", p.rec.Job, "kept", p.rec.archived())
	if p.rec.Pruned { // nothing is left of its story
		return true, nil
	}
	return true, p.archive(ctx)
}

// another reports whether a job is not the one whose story is over, but one that came by
// its id: numbers come round, and names are given again. It was submitted after the end,
// and it still waits or has begun since. A job that was put back into the queue before
// its end, which some schedulers call a submission, is the same.
func another(r *Record, job driver.Job) bool {
	over := r.OverAt()
	switch {
	case job.Submitted.Equal(r.Submitted), !job.Submitted.After(over):
		return false
	case !job.State.Ended():
		return true
	}
	return slices.ContainsFunc(job.Attempts, func(a driver.Attempt) bool { return a.Started.After(over) })
}

// Of reports whether the story is that of the job, and not of one before it that had the
// same id: the job was not looked at yet then.
func (r *Record) Of(job driver.Job) bool { return !r.Phase.Over() || !another(r, job) }

// replaced reports whether a job is not the one whose story goes on: it was submitted later
// and its attempts began anew. A job that is put back into the queue keeps them.
func replaced(r *Record, job driver.Job) bool {
	if !job.Submitted.After(r.Submitted) {
		return false
	}
	if n := len(r.Runs); n > 0 && job.Attempt < r.Runs[n-1].Attempt {
		return true
	}
	return slices.ContainsFunc(job.Attempts, func(a driver.Attempt) bool {
		known := r.run(a.Number).Unit
		return known != "" && a.Unit != "" && a.Unit != known
	})
}

// closeReplaced ends the story of a job whose id another has before its end was seen. What it did
// in the end is not known, so that nothing is learned of it.
func (p *reconciliation) closeReplaced(ctx context.Context) error {
	p.cfg.Log.Info("the id of a job is another's before its end was seen", "job", p.rec.Job, "kept", p.rec.archived())
	if err := p.lost(ctx); err != nil {
		return err
	}
	p.rec.Move = nil
	if err := p.to(Ended, JobEnded, Entry{Detail: "it was run again under its id before its end was seen"}); err != nil {
		return err
	}
	if err := p.archive(ctx); err != nil {
		return err
	}
	p.rec, p.dirty = nil, false
	return nil
}

// archive keeps the story under an id of its own.
func (p *reconciliation) archive(ctx context.Context) error {
	old := *p.rec
	old.Job = p.rec.archived()
	if err := p.save(ctx, &old); err != nil {
		return fmt.Errorf("keep the story of an earlier job %s: %w", p.rec.Job, err)
	}
	return nil
}

// archived is the id under which the story of a job is kept whose own is another's.
func (r *Record) archived() driver.JobID {
	return r.Job + "~" + driver.JobID(strconv.FormatInt(r.Submitted.Unix(), 10))
}
