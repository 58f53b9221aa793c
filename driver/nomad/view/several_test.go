package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// place is one of a job that runs as several: a group and an index in it.
func place(n uint64, group string, index int, client, desired string, tasks map[string][]*api.TaskEvent) *api.AllocationListStub {
	a := alloc(n, client, desired, "dead", false)
	a.TaskGroup, a.Name, a.JobVersion, a.TaskStates = group, fmt.Sprintf("train.%s[%d]", group, index), 0, map[string]*api.TaskState{}
	for name, events := range tasks {
		one := alloc(n, client, desired, "dead", client == "failed", events...)
		a.TaskStates[name] = one.TaskStates["main"]
		if client == "running" {
			a.TaskStates[name].State = "running"
		}
	}
	return a
}

// A job of several groups, allocations or main tasks has done its work where all of it
// was done, and has ended when nothing of it is left to be done.
func TestHowAJobOfSeveralEnded(t *testing.T) {
	t.Parallel()
	two := func(status string, stop bool) *api.Job {
		j := job(status, stop)
		j.TaskGroups[0].Count = new(2)
		return j
	}
	groups := func(status string, stop bool) *api.Job {
		j := job(status, stop)
		second := *j.TaskGroups[0]
		second.Name = new("h")
		j.TaskGroups = append(j.TaskGroups, &second)
		return j
	}
	leads := func(status string, stop, leader bool) *api.Job {
		j := job(status, stop)
		g := j.TaskGroups[0]
		g.Tasks = append(g.Tasks, &api.Task{Name: "helper", Driver: "raw_exec"})
		g.Tasks[0].Leader = leader
		return j
	}
	run := func(code string, before ...*api.TaskEvent) []*api.TaskEvent {
		events := append([]*api.TaskEvent{event(1, api.TaskStarted)}, before...)
		if code != "" {
			events = append(events, event(3, api.TaskTerminated, "exit_code", code))
		}
		return events
	}
	killing := event(2, api.TaskKilling)
	main := func(events []*api.TaskEvent) map[string][]*api.TaskEvent {
		return map[string][]*api.TaskEvent{"main": events}
	}
	type allocs = []*api.AllocationListStub
	for _, tt := range []struct {
		name   string
		job    *api.Job
		allocs allocs
		want   driver.State
		exit   int
	}{
		{"two groups that ended well", groups("dead", false), allocs{place(1, "g", 0, "complete", "run", main(run("0"))), place(2, "h", 0, "complete", "run", main(run("0")))}, driver.Succeeded, 0},
		{"one group is done, the other runs", groups("running", false), allocs{place(1, "g", 0, "running", "run", main(run(""))), place(2, "h", 0, "complete", "run", main(run("0")))}, driver.Running, -1},
		{"the later index is done, the other runs", two("running", false), allocs{place(1, "g", 0, "running", "run", main(run(""))), place(2, "g", 1, "complete", "run", main(run("0")))}, driver.Running, -1},
		{"one index failed, and the other runs", two("running", false), allocs{place(1, "g", 0, "running", "run", main(run(""))), place(2, "g", 1, "failed", "run", main(run("3")))}, driver.Running, -1},
		{"one index failed, the other did its work afterwards", two("dead", false), allocs{place(1, "g", 0, "failed", "run", main(run("3"))), place(2, "g", 1, "complete", "run", main(run("0")))}, driver.Failed, 3},
		{"an index that failed was placed again and did its work", two("dead", false), allocs{place(1, "g", 0, "failed", "run", main(run("3"))), place(2, "g", 1, "complete", "run", main(run("0"))), place(3, "g", 0, "complete", "run", main(run("0")))}, driver.Succeeded, 0},
		{"both indexes did their work", two("dead", false), allocs{place(1, "g", 0, "complete", "run", main(run("0"))), place(2, "g", 1, "complete", "run", main(run("0")))}, driver.Succeeded, 0},
		{"one index waits for a place", two("pending", false), allocs{place(1, "g", 0, "complete", "run", main(run("0")))}, driver.Pending, -1},
		{"stopped when one had done its work", two("dead", true), allocs{place(1, "g", 0, "complete", "stop", main(run("0"))), place(2, "g", 1, "complete", "stop", main(run("130", killing)))}, driver.Cancelled, -1},
		{"stopped, and not over", two("dead", true), allocs{place(1, "g", 0, "complete", "stop", main(run("0"))), place(2, "g", 1, "running", "stop", main(run("")))}, driver.Running, -1},
		{"stopped before it began", two("dead", true), allocs{place(1, "g", 0, "complete", "stop", nil)}, driver.Cancelled, -1},
		{"its leader did its work, which ends the helper", leads("dead", false, true), allocs{place(1, "g", 0, "complete", "run", map[string][]*api.TaskEvent{"main": run("0"), "helper": run("137", killing)})}, driver.Succeeded, 0},
		{"its leader did its work before it was stopped", leads("dead", true, true), allocs{place(1, "g", 0, "complete", "stop", map[string][]*api.TaskEvent{"main": run("0"), "helper": run("137", killing)})}, driver.Succeeded, 0},
		{"two main tasks that ended well", leads("dead", false, false), allocs{place(1, "g", 0, "complete", "run", map[string][]*api.TaskEvent{"main": run("0"), "helper": run("0")})}, driver.Succeeded, 0},
		{"lost with its node", two("dead", false), allocs{place(1, "g", 0, "lost", "stop", main(run(""))), place(2, "g", 1, "complete", "run", main(run("0")))}, driver.Lost, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			task := ""
			if _, main := spec.Main(tt.job); main != nil {
				task = main.Name
			}
			got, _ := view.Job(view.Input{ID: "train", Job: tt.job, Own: tt.job, Task: task, Allocs: tt.allocs})
			if got.State != tt.want || got.ExitCode != tt.exit {
				t.Errorf("%s (%s) with status %d, want %s with %d", got.State, got.Detail, got.ExitCode, tt.want, tt.exit)
			}
			if began := time.Unix(1001, 0).UTC(); tt.want == driver.Succeeded && (!got.Started.Equal(began) || got.Ended.IsZero()) {
				t.Errorf("from %v to %v, want from %v", got.Started, got.Ended, began)
			}
		})
	}
}
