package spec_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver/nomad/spec"
	"pitchpipe/test/nomadagent"
)

const patience = 3 * time.Minute

// work is a job whose task runs a shell script.
func work(id, kind, script string) *api.Job {
	g := api.NewTaskGroup("g", 1)
	t := api.NewTask("t", kind)
	t.SetConfig("command", "/bin/sh").SetConfig("args", []string{"-c", script})
	cpu, memory := 20, 32
	t.Resources = &api.Resources{CPU: &cpu, MemoryMB: &memory}
	no := 0
	mode := "fail"
	g.RestartPolicy = &api.RestartPolicy{Attempts: &no, Mode: &mode}
	g.ReschedulePolicy = &api.ReschedulePolicy{Attempts: &no}
	g.AddTask(t)
	return api.NewBatchJob(id, id, "global", 50).AddDatacenter("*").AddTaskGroup(g)
}

func register(t *testing.T, c *api.Client, job *api.Job) {
	t.Helper()
	if _, _, err := c.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
}

// allocs waits until a job has so many allocations and the newest is as wanted.
func allocs(t *testing.T, c *api.Client, id string, n int, is func(*api.AllocationListStub) bool) []*api.AllocationListStub {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		all, _, err := c.Jobs().Allocations(id, true, (&api.QueryOptions{}).WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(all, func(a, b *api.AllocationListStub) int { return int(a.CreateIndex) - int(b.CreateIndex) })
		if len(all) == n && is(all[n-1]) {
			return all
		}
		for _, a := range all {
			if s := a.TaskStates["t"]; a.ClientStatus == api.AllocClientStatusFailed && s != nil && s.StartedAt.IsZero() {
				t.Skipf("the node could not start the task, as beside other agents of one machine: %s", s.Events[len(s.Events)-1].DisplayMessage)
			}
		}
		if ctx.Err() != nil {
			for _, a := range all {
				t.Logf("%s: %s, wanted to %s, version %d, %+v", a.ID, a.ClientStatus, a.DesiredStatus, a.JobVersion, a.TaskStates["t"])
			}
			t.Fatalf("%s: %d allocations, want %d", id, len(all), n)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func complete(a *api.AllocationListStub) bool { return a.ClientStatus == api.AllocClientStatusComplete }

func lines(t *testing.T, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func TestOnANode(t *testing.T) {
	t.Parallel()
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real})
	c := a.Client(t)
	add := func(job *api.Job, run string) {
		t.Helper()
		if _, err := spec.Once(job, run); err != nil {
			t.Fatal(err)
		}
	}
	changed := func(job *api.Job) *api.Job {
		more := 60
		job.Priority = &more
		job.TaskGroups[0].Tasks[0].SetMeta("changed", "yes")
		return job
	}

	t.Run("without a mark finished work is done again, and no disk follows it", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "work")
		job := work("plain", "raw_exec", "echo x >>"+file+"; [ -e $NOMAD_ALLOC_DIR/data/was ] && echo carried >>"+file+"; touch $NOMAD_ALLOC_DIR/data/was")
		yes := true
		job.TaskGroups[0].EphemeralDisk = &api.EphemeralDisk{Sticky: &yes, Migrate: &yes}
		register(t, c, job)
		allocs(t, c, "plain", 1, complete)
		register(t, c, changed(job))
		all := allocs(t, c, "plain", 2, complete)
		detail, _, err := c.Allocations().Info(all[1].ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := lines(t, file); n != 2 || detail.PreviousAllocation != "" {
			t.Errorf("%d lines, predecessor %q: Nomad has changed; a mark could live on a sticky disk", n, detail.PreviousAllocation)
		}
	})

	t.Run("with a mark it is done once", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "work")
		job := work("marked", "raw_exec", "echo x >>"+file)
		add(job, "run-1")
		register(t, c, job)
		allocs(t, c, "marked", 1, complete)
		register(t, c, changed(job))
		allocs(t, c, "marked", 2, complete)
		if n := lines(t, file); n != 1 {
			t.Errorf("done %d times", n)
		}
		// Another submission is other work.
		add(job, "run-2")
		register(t, c, job)
		allocs(t, c, "marked", 3, complete)
		if n := lines(t, file); n != 2 {
			t.Errorf("another run: done %d times", n)
		}
	})

	t.Run("work that ends while it is replaced is done once", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "work")
		// It takes the request to save for its last epoch.
		job := work("late", "raw_exec", "echo x >>"+file+"; trap 'exit 0' USR1; touch "+dir+"/ready; while :; do sleep 0.05; done")
		add(job, "run-1")
		saves(job)
		register(t, c, job)
		allocs(t, c, "late", 1, func(*api.AllocationListStub) bool { return exists(dir + "/ready") })
		register(t, c, changed(job))
		allocs(t, c, "late", 2, complete)
		if n := lines(t, file); n != 1 {
			t.Errorf("done %d times", n)
		}
	})

	t.Run("a task saves at Nomad's own end of it, and goes on in its successor", func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "work")
		job := work("saves", "raw_exec", fmt.Sprintf("echo x >>%[1]s/work; [ -e %[1]s/saved ] && exit 0; trap 'touch %[1]s/saved; exit 85' USR1; touch %[1]s/ready; while :; do sleep 0.05; done", dir))
		add(job, "run-1")
		saves(job)
		register(t, c, job)
		allocs(t, c, "saves", 1, func(*api.AllocationListStub) bool { return exists(dir + "/ready") })
		register(t, c, changed(job))
		all := allocs(t, c, "saves", 2, complete)
		if n := lines(t, file); n != 2 {
			t.Errorf("begun %d times, want 2", n)
		}
		code := ""
		for _, e := range all[0].TaskStates["t"].Events {
			if e.Type == api.TaskTerminated {
				code = e.Details["exit_code"]
			}
		}
		if code != "85" {
			t.Errorf("the first ended with %q, want 85", code)
		}
	})
}

// saves lets Nomad's own end of the task be the request to save.
func saves(job *api.Job) {
	t := job.TaskGroups[0].Tasks[0]
	t.KillSignal, t.KillTimeout = "SIGUSR1", new(20*time.Second)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
