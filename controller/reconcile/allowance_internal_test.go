package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestWhatAnAttemptMayUseIsWhatTheOthersLeft(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	joules := func(v tuning.Joules) *tuning.Joules { return &v }
	rec := &Record{
		Course: Course{Epochs: []tuning.Epoch{
			{Number: 1, Attempt: 1, Joules: joules(100), Source: "rapl"},
			{Number: 2, Attempt: 1, Joules: joules(30), Source: tuning.Modelled},
			{Number: 3, Attempt: 1},
			{Number: 4, Attempt: 2, Joules: joules(7), Source: "rapl"},
		}},
	}
	job := driver.Job{Attempts: []driver.Attempt{{Number: 1, Started: noon, Ended: noon.Add(time.Hour)}, {Number: 2, Started: noon.Add(2 * time.Hour)}}}
	for _, tc := range []struct {
		name    string
		budget  tuning.Budget
		limit   time.Duration
		model   bool
		attempt int
		want    Allowance
	}{
		{"no budget of energy", tuning.Budget{Time: time.Hour}, time.Hour, false, 1, Allowance{}},
		{"the first attempt", tuning.Budget{Energy: 500}, 0, false, 1, Allowance{Energy: 500}},
		{"modelled joules of the first one do not count", tuning.Budget{Energy: 500}, 0, false, 2, Allowance{Energy: 500, Used: 100}},
		{"unless the site says so", tuning.Budget{Energy: 500}, 0, true, 2, Allowance{Energy: 500, Used: 130, Modelled: true}},
		{"the time is what the first one left", tuning.Budget{Energy: 500, Time: 3 * time.Hour}, 0, false, 2, Allowance{Energy: 500, Used: 100, Time: 2 * time.Hour}},
		{"the scheduler's limit is nearer", tuning.Budget{Energy: 500, Time: 3 * time.Hour}, time.Hour, false, 2, Allowance{Energy: 500, Used: 100, Time: time.Hour}},
		{"the scheduler's limit alone", tuning.Budget{Energy: 500}, time.Hour, false, 1, Allowance{Energy: 500, Time: time.Hour}},
		{"no time is left", tuning.Budget{Energy: 500, Time: time.Minute}, time.Hour, false, 2, Allowance{Energy: 500, Used: 100, Time: time.Second}},
	} {
		j := job
		j.Resources.TimeLimit = tc.limit
		rec.Policy.Budget = tc.budget
		p := &reconciliation{Loop: &Loop{services: Services{Site: func(driver.Job) tuning.Site { return tuning.Site{EnforceModel: tc.model} }}}, job: j, rec: rec}
		if diff := cmp.Diff(tc.want, p.allowance(tc.attempt)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
