package slurm_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/slurmctl"
)

func openJournal(t *testing.T) (slurm.Journal, string) {
	t.Helper()
	dir := t.TempDir()
	j, err := slurm.OpenJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	return j, dir
}

func TestARequestIsKeptUntilItIsFreed(t *testing.T) {
	t.Parallel()
	j, _ := openJournal(t)
	if _, err := j.Request("r"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a new request: %v, want %v", err, fs.ErrNotExist)
	}
	for _, id := range []driver.JobID{"", "7"} {
		if err := j.Keep(slurm.Request{ID: "r", Marker: "m", Job: id}); err != nil {
			t.Fatal(err)
		}
		if r, err := j.Request("r"); err != nil || r.Job != id || r.Marker != "m" {
			t.Errorf("request %+v (%v), want its job %q", r, err, id)
		}
	}
	if err := j.Free("r"); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Request("r"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a freed request: %v, want %v", err, fs.ErrNotExist)
	}
}

func TestTwoJournalsMarkTheSameRequestDifferently(t *testing.T) {
	t.Parallel()
	a, _ := openJournal(t)
	b, _ := openJournal(t)
	if a.Marker("r") == b.Marker("r") || a.Marker("r") == a.Marker("s") || a.Marker("r") != a.Marker("r") { //nolint:staticcheck // asked twice
		t.Errorf("markers %s, %s, %s", a.Marker("r"), b.Marker("r"), a.Marker("s"))
	}
}

func TestARecordComesBackAsItWas(t *testing.T) {
	t.Parallel()
	j, dir := openJournal(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := &slurm.Record{
		Job: "9_1", Request: "r", Script: []byte("#!/bin/sh\n\xff"), Submitted: at, Own: slurm.Size{Cores: 2, Memory: slurmctl.Memory{PerCPU: true}},
		Next: &slurm.Next{Number: 2, Change: driver.Change{Env: map[string]string{"A": "b"}}},
		From: slurm.From{Restarts: 3},
		Record: move.Record{
			Moving: &move.Moving{Intent: driver.Intent{ID: "i", Checkpoint: &driver.Checkpoint{Signal: "USR1"}}, Phase: move.Ending, Asked: at},
			Closed: map[string]driver.StepKind{"h": driver.StepAbandoned},
		},
	}
	if err := j.Write(want); err != nil {
		t.Fatal(err)
	}
	got, err := j.Read("9_1")
	if err != nil || !cmp.Equal(want, got) {
		t.Errorf("record (%v): %s", err, cmp.Diff(want, got))
	}
	if ids, err := j.List(); err != nil || len(ids) != 1 || ids[0] != "9_1" {
		t.Errorf("jobs %v (%v), want 9_1", ids, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "jobs", "5.json"), []byte(`{"version":9,"job":"5"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Read("5"); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a record of another version: %v, want %v", err, driver.ErrInvalid)
	}
	if err := j.Forget("9_1"); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Read("9_1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a forgotten record: %v, want %v", err, fs.ErrNotExist)
	}
}

func TestWhatTasksHaveInCommonIsNoJob(t *testing.T) {
	t.Parallel()
	j, _ := openJournal(t)
	if _, err := j.Arrays.Read("7"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an array that there is not: %v, want %v", err, fs.ErrNotExist)
	}
	common := &slurm.Record{Job: "7", Request: "request", Script: []byte("true\n")}
	task := &slurm.Record{Job: "7_1", Number: "8"}
	if err := errors.Join(j.Arrays.Write(common), j.Write(task)); err != nil {
		t.Fatal(err)
	}
	if got, err := j.Arrays.Read("7"); err != nil || got.Request != "request" || string(got.Script) != "true\n" {
		t.Errorf("read %+v (%v), want %+v", got, err, common)
	}
	if got, err := j.Read("7_1"); err != nil || got.Number != "8" {
		t.Errorf("read %+v (%v), want %+v", got, err, task)
	}
	jobs, err := j.List()
	arrays, err2 := j.Arrays.List()
	if err := errors.Join(err, err2); err != nil || len(jobs) != 1 || len(arrays) != 1 || jobs[0] != "7_1" || arrays[0] != "7" {
		t.Errorf("jobs %v and arrays %v (%v), want 7_1 and 7", jobs, arrays, err)
	}
	for range 2 {
		if err := j.Arrays.Forget("7"); err != nil {
			t.Error(err)
		}
	}
	if arrays, err := j.Arrays.List(); err != nil || len(arrays) != 0 {
		t.Errorf("arrays %v (%v), want none", arrays, err)
	}
}
