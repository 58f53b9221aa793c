package daemon

import (
	"context"
	"slices"

	"pitchpipe/controller/reconcile"
	"pitchpipe/driver"
)

// owned are the records of the jobs of those owners that the caller may see, the
// oldest first. The records of others are not decoded: a user who looks at one job
// does not pay for the epochs of everybody's.
func (r *records) owned(_ context.Context, may func(owner string) bool) ([]*reconcile.Record, error) {
	// Whose they are is asked before the store is read: pruning holds the lock while
	// it writes, and a writer may wait for readers.
	mine := map[string]bool{}
	r.mu.RLock()
	for id, d := range r.digests {
		mine[string(id)] = may(d.owner)
	}
	r.mu.RUnlock()
	var out []*reconcile.Record
	err := r.store.ForEachJSON(bucketRecords, func(key string, decode func(v any) error) error {
		if !mine[key] {
			return nil
		}
		var rec reconcile.Record
		if err := decode(&rec); err != nil {
			return err
		}
		if may(rec.Owner) {
			out = append(out, &rec)
		}
		return nil
	})
	slices.SortStableFunc(out, func(a, b *reconcile.Record) int { return a.Submitted.Compare(b.Submitted) })
	return out, err
}

// owner is whose job a record is; empty where there is none.
func (r *records) owner(id driver.JobID) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.digests[id].owner
}

// owners are those of the jobs whose story goes on, each as often as he has one.
func (r *records) owners() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []string
	for _, d := range r.digests {
		if d.over.IsZero() && d.owner != "" {
			out = append(out, d.owner)
		}
	}
	return out
}
