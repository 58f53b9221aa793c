package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"pitchpipe/driver"
)

// If the scheduler does not answer, the next event asks again.
func (p *reconciliation) anew(ctx context.Context) (bool, error) {
	job, err := p.cfg.Scheduler.Get(ctx, p.rec.Job)
	if err != nil || !another(p.rec, job) {
		return false, nil //nolint:nilerr // an ended job needs nothing
	}
	p.cfg.Log.Info("another job has the id of an ended one", "job", p.rec.Job, "kept", p.rec.archived())
	if p.rec.Pruned { // there is nothing to archive
		return true, nil
	}
	return true, p.archive(ctx)
}

// another reports whether a job is not the one of the ended record but a later one with the
// same id: schedulers reuse numbers, and users reuse names. It was submitted after the
// record's end, and waits or has begun since. A requeue before the end, which some schedulers
// report as a submission, is the same job.
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

// Of reports whether the record is of this job, and not of an earlier one with the same id.
func (r *Record) Of(job driver.Job) bool { return !r.Phase.Over() || !another(r, job) }

// replaced reports whether a job is another one than that of the open record: it was
// submitted later and its attempts began anew. A requeued job keeps its attempts.
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

// closeReplaced closes the record of a job whose id another job got before its end was seen.
// Nothing is learned of its end.
func (p *reconciliation) closeReplaced(ctx context.Context) error {
	p.cfg.Log.Info("another job has this id; the end of the first was not seen", "job", p.rec.Job, "kept", p.rec.archived())
	if err := p.lost(ctx); err != nil {
		return err
	}
	p.rec.Move = nil
	if err := p.to(Ended, JobEnded, Entry{Detail: "another job got its id before its end was seen"}); err != nil {
		return err
	}
	if err := p.archive(ctx); err != nil {
		return err
	}
	p.rec, p.dirty = nil, false
	return nil
}

func (p *reconciliation) archive(ctx context.Context) error {
	old := *p.rec
	old.Job = p.rec.archived()
	if err := p.save(ctx, &old); err != nil {
		return fmt.Errorf("archive the record of the earlier job %s: %w", p.rec.Job, err)
	}
	return nil
}

func (r *Record) archived() driver.JobID {
	return r.Job + "~" + driver.JobID(strconv.FormatInt(r.Submitted.Unix(), 10))
}
