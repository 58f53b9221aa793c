package daemon

import (
	"fmt"
	"testing"
	"time"

	"pitchpipe/controller/advise"
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
