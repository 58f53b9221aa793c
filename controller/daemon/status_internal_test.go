package daemon

import (
	"testing"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestTheStatusHasCoreHoursAndCost(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	job := driver.Job{
		ID: "1", State: driver.Running, Attempt: 1, Resources: driver.Resources{Cores: 2, MemoryBytes: 4 << 30, GPUs: 1},
		Attempts: []driver.Attempt{{Number: 1, Started: began, Change: driver.Change{MemoryBytes: 2 << 30}}},
	}
	rec := &reconcile.Record{Identity: reconcile.Identity{Job: "1"}, Request: reconcile.Request{Policy: tuning.Policy{Tariff: tuning.Tariff{CoreHour: 1, GiBHour: 10, GPUHour: 100, KWh: 1, Unit: "EUR"}}}}
	got := status(job, rec, began.Add(30*time.Minute))
	if got.CoreHours == nil || *got.CoreHours != 1 || got.Cost == nil || *got.Cost != 61 || got.CostUnit != "EUR" || !got.FreeEnergy {
		t.Errorf("core-hours %v, cost %v %s, without energy %t; want 1, and 61 EUR without energy", got.CoreHours, got.Cost, got.CostUnit, got.FreeEnergy)
	}
	job.Attempts[0].Started = time.Time{}
	if got := status(job, rec, began); got.CoreHours != nil || got.Cost != nil {
		t.Errorf("of a job that began at an unknown time: core-hours %v, cost %v", got.CoreHours, got.Cost)
	}
}
