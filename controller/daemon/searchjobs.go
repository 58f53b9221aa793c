package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

const (
	bucketSearches = "searches"
	bucketCourses  = "search-courses"
	bucketTrials   = "search-trials" // by search and number
)

// searchStore keeps searches in the store of the records.
type searchStore struct{ store *knowledge.Store }

var _ trials.Store = searchStore{}

// All implements trials.Store.
func (s searchStore) All(_ context.Context) (out []trials.State, err error) {
	searches, err1 := readAll[trials.Search](s.store, bucketSearches)
	courses, err2 := readAll[trials.Course](s.store, bucketCourses)
	all, err3 := readAll[trials.Trial](s.store, bucketTrials)
	of := map[string][]trials.Trial{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		id, _, _ := strings.Cut(key, "/")
		of[id] = append(of[id], all[key])
	}
	for _, id := range slices.Sorted(maps.Keys(searches)) {
		x := trials.State{Search: searches[id], Trials: of[id]}
		if course, ok := courses[id]; ok {
			x.Course = course
		}
		out = append(out, x)
	}
	return out, errors.Join(err1, err2, err3)
}

// Save implements trials.Store.
func (s searchStore) Save(_ context.Context, x trials.Search, whole bool, changed []trials.Trial) error {
	return s.store.Update(func(tx *knowledge.Tx) error {
		for _, t := range changed {
			if err := tx.PutJSON(bucketTrials, trialKey(x.ID, t.Number), t); err != nil {
				return err
			}
		}
		if whole {
			if err := tx.PutJSON(bucketSearches, x.ID, x); err != nil {
				return err
			}
		}
		return tx.PutJSON(bucketCourses, x.ID, x.Course)
	})
}

// Delete implements trials.Store.
func (s searchStore) Delete(_ context.Context, x trials.State) error {
	return s.store.Update(func(tx *knowledge.Tx) error {
		err := errors.Join(tx.Delete(bucketSearches, x.ID), tx.Delete(bucketCourses, x.ID))
		for _, t := range x.Trials {
			err = errors.Join(err, tx.Delete(bucketTrials, trialKey(x.ID, t.Number)))
		}
		return err
	})
}

func trialKey(search string, trial int) string { return fmt.Sprintf("%s/%06d", search, trial) }

// trialJobs are the jobs of searches.
type trialJobs struct{ *Daemon }

var _ trials.Jobs = trialJobs{}

// Start implements trials.Jobs.
func (d trialJobs) Start(ctx context.Context, x trials.Search, id driver.RequestID, spec driver.Spec) (driver.JobID, error) {
	if err := d.candidate.Leads(ctx); err != nil {
		return "", err
	}
	spec.NotBefore, spec.Progress = d.beginsAt(x.Policy.Trial(), x.Owner), progress(x.Policy.Progress)
	job, err := d.driver.Start(ctx, id, spec)
	if err != nil {
		return "", err
	}
	d.queue.Add(job.ID)
	return job.ID, nil
}

// Stop implements trials.Jobs.
func (d trialJobs) Stop(ctx context.Context, id driver.JobID) error {
	if err := d.candidate.Leads(ctx); err != nil {
		return err
	}
	return d.driver.Stop(ctx, id)
}

// finder is a driver that knows more of a request than its list shows. After a submission with
// an unknown outcome, the job may be there without a record, or still appear.
type finder interface {
	Find(ctx context.Context, id driver.RequestID) (driver.JobID, error)
}

// Find implements trials.Jobs.
func (d trialJobs) Find(ctx context.Context, id driver.RequestID) (driver.JobID, error) {
	if f, ok := d.driver.(finder); ok {
		return f.Find(ctx, id)
	}
	jobs, err := d.driver.List(ctx)
	if err != nil {
		return "", err
	}
	j, ok := tuning.First(jobs, func(j driver.Job) bool { return j.Request == id })
	if !ok {
		err = driver.ErrNotFound
	}
	return j.ID, err
}
