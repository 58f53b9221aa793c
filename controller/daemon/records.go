package daemon

import (
	"context"
	"errors"
	"slices"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/driver"
)

const bucketRecords = "records"

// records keeps the jobs' stories in the store.
type records struct{ store *knowledge.Store }

var _ reconcile.Records = records{}

func (r records) Load(_ context.Context, id driver.JobID) (*reconcile.Record, error) {
	var rec reconcile.Record
	switch err := r.store.GetJSON(bucketRecords, string(id), &rec); {
	case errors.Is(err, knowledge.ErrNotFound):
		return nil, reconcile.ErrNoRecord
	case err != nil:
		return nil, err
	}
	return &rec, nil
}

func (r records) Save(_ context.Context, rec *reconcile.Record) error {
	return r.store.PutJSON(bucketRecords, string(rec.Job), rec)
}

func (r records) All(_ context.Context) ([]*reconcile.Record, error) {
	var all []*reconcile.Record
	err := r.store.ForEachJSON(bucketRecords, func(_ string, decode func(v any) error) error {
		var rec reconcile.Record
		if err := decode(&rec); err != nil {
			return err
		}
		all = append(all, &rec)
		return nil
	})
	slices.SortStableFunc(all, func(a, b *reconcile.Record) int { return a.Submitted.Compare(b.Submitted) })
	return all, err
}
