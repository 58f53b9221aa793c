package local

import (
	"errors"
	"os"
	"testing"
	"time"

	"pitchpipe/driver"
)

// opened is a driver that starts nothing by itself.
func opened(t *testing.T, dir string) *Driver {
	t.Helper()
	d, err := New(Config{Dir: dir, Supervisor: []string{"/bin/false"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func cancelled(t *testing.T, d *Driver, request driver.RequestID) driver.Job {
	t.Helper()
	job, err := d.Start(t.Context(), request, driver.Spec{Filename: "a.sh", Source: []byte("#!/bin/sh\n"), NotBefore: time.Now().Add(time.Hour)})
	if err == nil {
		err = d.Stop(t.Context(), job.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return job
}

func TestAJobIsForgottenThatEndedLongAgo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := opened(t, dir)
	job := cancelled(t, d, "request")
	now := time.Now()
	if d.pass(t.Context(), now.Add(keepEnded-pruneEvery)); len(d.jobs) != 1 {
		t.Error("it was forgotten too soon")
	}
	if d.pass(t.Context(), now.Add(keepEnded+pruneEvery)); len(d.jobs)+len(d.order) != 0 {
		t.Errorf("%v are left", d.order)
	}
	if left, err := os.ReadDir(d.store.requests()); err != nil || len(left) > 0 {
		t.Errorf("requests left: %v, %v", left, err)
	}
	if again := cancelled(t, d, "request"); again.ID == job.ID {
		t.Errorf("job %s again", job.ID)
	}
}

func TestNoJobTakesTheNumberOfOneThatIsThere(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(next string) error{
		"the number of the next job is lost":            os.Remove,
		"the number of the next job was put back":       func(next string) error { return os.WriteFile(next, []byte("2"), 0o600) },
		"the number of the next job is as it should be": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := opened(t, dir)
			for _, request := range []driver.RequestID{"1", "2", "3"} {
				cancelled(t, d, request)
			}
			if err := errors.Join(d.Close(), change(d.store.nextFile())); err != nil {
				t.Fatal(err)
			}
			if job := cancelled(t, opened(t, dir), "4"); job.ID != d.jobID(4) {
				t.Errorf("the fourth job is %s", job.ID)
			}
		})
	}
}

func TestARecordThatCannotBeReadHidesNoOther(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := opened(t, dir)
	broken, whole := cancelled(t, d, "broken"), cancelled(t, d, "whole")
	if err := errors.Join(d.Close(), os.WriteFile(d.store.recordFile(broken.ID), []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	d = opened(t, dir)
	if jobs, err := d.List(t.Context()); err != nil || len(jobs) != 1 || jobs[0].ID != whole.ID {
		t.Errorf("%v, %v; want %s alone", jobs, err, whole.ID)
	}
	if job, err := d.Start(t.Context(), "broken", driver.Spec{Filename: "a.sh", Source: []byte("#!/bin/sh\n")}); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("its request makes %s, %v", job.ID, err)
	}
}
