package daemon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pitchpipe/controller/advise"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/driver"
)

// advisable is a scheduler that takes advice about jobs that the driver does not know.
type advisable struct {
	driver.Driver
	mu   sync.Mutex
	jobs []driver.Job
}

func (a *advisable) Queue(context.Context) ([]driver.Job, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.jobs), nil
}

func (a *advisable) Past(context.Context, time.Time, time.Time) ([]driver.Job, error) {
	return nil, driver.ErrUnsupported
}

func (a *advisable) Advise(_ context.Context, what driver.Advice) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.jobs {
		if a.jobs[i].ID == what.Job {
			a.jobs[i].Resources.TimeLimit = max(what.TimeLimit, 0)
			if what.TimeLimit == 0 {
				a.jobs[i].Resources.TimeLimit = 8 * time.Hour
			}
		}
	}
	return nil
}

func TestAnOwnerSeesTheAdviceAboutHisJobsAndTakesItBack(t *testing.T) {
	t.Parallel()
	sub := time.Now().Add(-24 * time.Hour)
	a := &advisable{}
	for n := range 200 {
		j := driver.Job{ID: driver.JobID(fmt.Sprint(1000 + n)), Owner: []string{"ann", "bob"}[n%2], Name: "train", State: driver.Succeeded, Submitted: sub, Resources: driver.Resources{Cores: 1, TimeLimit: 8 * time.Hour}}
		if j.Started, j.Ended = sub.Add(time.Duration(n)*time.Minute), sub.Add(time.Duration(n)*time.Minute+100*time.Second); n >= 198 {
			j.State, j.Started, j.Ended = driver.Pending, time.Time{}, time.Time{}
		}
		a.jobs = append(a.jobs, j)
	}
	c := daemontest.Start(t, daemontest.Options{Site: "default: {advice: apply}\n", Driver: func(d driver.Driver) driver.Driver { a.Driver = d; return a }})
	ann := peer.Peer{Name: "ann", UID: 1234}
	awaits := func(state advise.State, limit time.Duration) {
		t.Helper()
		var rows []advise.Item
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			rows = nil
			if err := json.Unmarshal(as(t, c, ann, "GET", "/v1/advice", "").Body.Bytes(), &rows); err != nil {
				t.Fatal(err)
			}
			a.mu.Lock()
			has := a.jobs[198].Resources.TimeLimit
			a.mu.Unlock()
			if len(rows) == 1 && rows[0].Job == "1198" && rows[0].State == state && (has == limit || limit == 0 && has < time.Hour) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("it has %v, and ann sees %+v; want her job alone, %s", has, rows, state)
			}
		}
	}
	awaits(advise.Applied, 0)
	if w := as(t, c, ann, "POST", "/v1/off/1199", ""); w.Code != 403 {
		t.Errorf("switching off another's job: %d", w.Code)
	}
	if w := as(t, c, ann, "POST", "/v1/off/1198", ""); w.Code != 204 {
		t.Errorf("switching off her job: %d %s", w.Code, w.Body)
	}
	awaits(advise.Recommended, 8*time.Hour)
	if w := as(t, c, ann, "POST", "/v1/off/77", ""); w.Code != 404 {
		t.Errorf("switching off no job: %d", w.Code)
	}
}
