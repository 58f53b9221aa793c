package daemon

import (
	"testing"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestAJobThatWaitsSaysWhy(t *testing.T) {
	t.Parallel()
	rec := &reconcile.Record{Identity: reconcile.Identity{Job: "1"}, Phase: reconcile.Settled, Reason: tuning.ReasonNoKnobs}
	tunes := tuning.ReasonNoKnobs.Sentence()
	for _, tt := range []struct {
		name            string
		job             driver.Job
		status, verdict string
	}{
		{"for room on Nomad", driver.Job{State: driver.Pending, Detail: "waits for room: cores exhausted on 1 of 1 nodes"}, "waits for room: cores exhausted on 1 of 1 nodes; " + tunes, "pending (waits for room: cores exhausted on 1 of 1 nodes), unchanged"},
		{"for a reason of Slurm", driver.Job{State: driver.Pending, Detail: "pending: Dependency"}, "waits: Dependency; " + tunes, "pending (waits: Dependency), unchanged"},
		{"without a reason of Slurm", driver.Job{State: driver.Pending, Detail: "pending"}, tunes, "pending, unchanged"},
		{"not where it runs", driver.Job{State: driver.Running, Detail: "is being stopped"}, tunes, "running, unchanged"},
	} {
		if got := status(tt.job, rec, time.Now()).Sentence; got != tt.status {
			t.Errorf("%s: status says %q, want %q", tt.name, got, tt.status)
		}
		if got := withWait(tt.job, string(tt.job.State)+", unchanged"); got != tt.verdict {
			t.Errorf("%s: explain says %q, want %q", tt.name, got, tt.verdict)
		}
	}
}

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
