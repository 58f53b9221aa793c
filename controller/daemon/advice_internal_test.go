package daemon

import (
	"fmt"
	"testing"
	"time"

	"pitchpipe/controller/advise"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestForecastsComeFromTheJobsThatEnded(t *testing.T) {
	t.Parallel()
	var f forecasts
	job := driver.Job{Name: "train", Owner: "u", Partition: "p", Resources: driver.Resources{Cores: 4, TimeLimit: time.Hour}}
	if got := f.Forecast(job); got.Samples != 0 || got.Quantile != nil {
		t.Errorf("before any job has ended: %+v", got)
	}
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	var past []driver.Job
	for n := range 200 {
		j := job
		j.ID, j.Submitted = driver.JobID(fmt.Sprint(n)), day.Add(time.Duration(n)*time.Minute)
		j.Started, j.Ended, j.Used = j.Submitted, j.Submitted.Add(100*time.Second), 40*time.Second
		past = append(past, j)
	}
	f.Learn(past[:150])
	f.Learn(past[150:])
	job.Submitted = day.Add(time.Hour * 10)
	got := f.Forecast(job)
	if got.Samples < advise.Enough || got.Median < 90 || got.Median > 110 || got.Quantile(0.95) > 150 || got.Busy != 0.1 {
		t.Errorf("%d jobs, median %v, 95 %% %v, busy %v", got.Samples, got.Median, got.Quantile(0.95), got.Busy)
	}
	job.Owner = "another"
	if got := f.Forecast(job); got.Samples >= advise.Enough || got.Busy != 0 {
		t.Errorf("of a user of whom nothing is known: %d jobs, busy %v", got.Samples, got.Busy)
	}
}

func TestRunsThatSucceededTellWhichNodesAreFaster(t *testing.T) {
	t.Parallel()
	var f forecasts
	job := driver.Job{Name: "train", Owner: "u", State: driver.Succeeded, Class: "new", Started: time.Unix(1e9, 0), Ended: time.Unix(1e9+60, 0)}
	failed, elsewhere, larger := job, job, job
	failed.State, elsewhere.Class, larger.Resources.Cores = driver.Failed, "", 8
	f.Learn([]driver.Job{job, failed, elsewhere, larger})
	f.Learn([]driver.Job{job})
	if got := f.Forecast(job).Runs; len(got) != 1 || len(got["new"]) != 2 {
		t.Errorf("%v, want two runs on new nodes", got)
	}
}

// What cannot be read is not taken for a job that no one tunes.
func TestWhetherAJobIsTuned(t *testing.T) {
	t.Parallel()
	store, r := stored(t)
	d := &Daemon{records: r}
	for id, value := range map[string]any{
		"recommend": reconcile.Record{Phase: reconcile.Held, Request: reconcile.Request{Policy: tuning.Policy{Mode: tuning.Recommend}}},
		"apply":     reconcile.Record{Phase: reconcile.Held, Request: reconcile.Request{Policy: tuning.Policy{Mode: tuning.Apply}}},
		"damaged":   "no record",
	} {
		if err := store.PutJSON(bucketRecords, id, value); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[driver.JobID]bool{"none": false, "recommend": false, "apply": true, "damaged": true} {
		if got := d.tuned(driver.Job{ID: id}); got != want {
			t.Errorf("%s: %t, want %t", id, got, want)
		}
	}
}
