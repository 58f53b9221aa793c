package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

const (
	// keepRecords is how long the record of an ended job stays, and an ended search. Observations
	// stay until they count for nothing.
	keepRecords = 30 * 24 * time.Hour
	// keepEnded is the largest number of records of ended jobs.
	keepEnded = 10_000
	// keepObservations is the largest number of observations of one kind.
	keepObservations = 2000
	// pruneEvery is the time between two prunings.
	pruneEvery = time.Hour
)

// pruneLoop prunes until ctx ends. A failure is logged and tried again the next time.
func (d *Daemon) pruneLoop(ctx context.Context) error {
	for wait := time.Minute; ; wait = pruneEvery {
		if err := driver.Pause(ctx, wait); err != nil {
			return err
		}
		if err := d.prune(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("old records are not pruned", "error", err)
		}
	}
}

func (d *Daemon) prune(ctx context.Context) error {
	jobs, err := d.driver.List(ctx)
	if err != nil {
		return fmt.Errorf("list the jobs: %w", err)
	}
	known := make(map[string]bool, 2*len(jobs))
	for _, j := range jobs {
		known[string(j.ID)], known[requestKey(j.Request)] = true, true
	}
	before := time.Now().Add(-keepRecords)
	searches, err := d.searches.Prune(ctx, before)
	if searches > 0 {
		d.log.Info("old searches pruned", "searches", searches)
	}
	if err := errors.Join(err, d.pauses.prune(before, known)); err != nil {
		return err
	}
	n, err := d.records.prune(before, keepEnded, func(id driver.JobID) bool { return known[string(id)] })
	if n > 0 {
		d.log.Info("old records pruned", "records", n)
	}
	if err != nil {
		return err
	}
	if n, err = d.store.Prune(time.Now().AddDate(0, 0, -tuning.WornOut), keepObservations); n > 0 {
		d.log.Info("old observations pruned", "observations", n)
	}
	return err
}

// prune drops the records of jobs that ended before the given time, and the oldest beyond
// most. The record of a job that its scheduler still knows shrinks to the fact that the job
// is over: without it the job would count as new. It returns how many it dropped.
func (r *records) prune(before time.Time, most int, known func(driver.JobID) bool) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var over []driver.JobID // the newest first
	var old []driver.JobID
	for id, d := range r.digests {
		switch {
		case d.pruned && !known(id):
			old = append(old, id)
		case !d.pruned && d.phase.Over():
			over = append(over, id)
		}
	}
	slices.SortFunc(over, func(a, b driver.JobID) int { return r.digests[b].over.Compare(r.digests[a].over) })
	for i, id := range over {
		if i >= most || r.digests[id].over.Before(before) {
			old = append(old, id)
		}
	}
	if len(old) == 0 {
		return 0, nil
	}
	sum := r.pruned.clone()
	rest := map[driver.JobID]*reconcile.Record{}
	err := r.store.Update(func(tx *knowledge.Tx) error {
		for _, id := range old {
			if !r.digests[id].pruned {
				sum.add(r.digests[id])
			}
			if !known(id) {
				if err := tx.Delete(bucketRecords, string(id)); err != nil {
					return err
				}
				continue
			}
			var rec reconcile.Record
			if err := tx.GetJSON(bucketRecords, string(id), &rec); errors.Is(err, knowledge.ErrDamaged) {
				continue // it stays, and is read by no one
			} else if err != nil {
				return err
			}
			rest[id] = rec.Rest()
			if err := tx.PutJSON(bucketRecords, string(id), rest[id]); err != nil {
				return err
			}
		}
		return tx.PutJSON(bucketMarks, keyPruned, sum)
	})
	if err != nil {
		return 0, fmt.Errorf("prune the records: %w", err)
	}
	r.pruned = sum
	for _, id := range old {
		delete(r.digests, id)
		if rec := rest[id]; rec != nil {
			r.digests[id] = digestOf(rec)
		}
	}
	return len(old), nil
}
