package nomadserver_test

import (
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver"
)

func start(t *testing.T, o nomadserver.Options) (*nomadserver.Server, *api.Client) {
	t.Helper()
	o.Dir = t.TempDir()
	s, err := nomadserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := api.NewClient(&api.Config{Address: s.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestABatchJobRunsToItsEnd(t *testing.T) {
	t.Parallel()
	_, c := start(t, nomadserver.Options{})
	job := api.NewBatchJob("short", "short", "global", 50)
	g := api.NewTaskGroup("g", 1)
	task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/sh").SetConfig("args", []string{"-c", "sleep 0.2"})
	g.AddTask(task)
	job.AddTaskGroup(g)
	reg, _, err := c.Jobs().Register(job, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", reg)
	var index uint64
	for {
		j, meta, err := c.Jobs().Info("short", &api.QueryOptions{WaitIndex: index, WaitTime: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		index = meta.LastIndex
		t.Log(*j.Status, index)
		if *j.Status == "dead" {
			break
		}
	}
	allocs, _, err := c.Jobs().Allocations("short", true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(allocs) != 1 || allocs[0].ClientStatus != "complete" {
		t.Errorf("%+v", allocs)
	}
}
