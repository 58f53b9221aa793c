package view_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"pgregory.net/rapid"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

func job(status string, stop bool) *api.Job {
	j := &api.Job{
		ID: new("train"), Name: new("train"), Type: new("batch"), Status: new(status), Stop: new(stop), Version: new(uint64(0)),
		TaskGroups: []*api.TaskGroup{{Name: new("g"), Count: new(1), Tasks: []*api.Task{{
			Name: "main", Driver: "raw_exec", Config: map[string]any{"command": "/bin/train"}, Resources: &api.Resources{MemoryMB: new(100)},
		}}}},
	}
	return j
}

// event happens a second after the one before.
func event(at int, kind string, details ...string) *api.TaskEvent {
	e := &api.TaskEvent{Type: kind, Time: time.Unix(int64(1000+at), 0).UnixNano(), Details: map[string]string{}}
	for i := 0; i+1 < len(details); i += 2 {
		e.Details[details[i]] = details[i+1]
	}
	return e
}

// alloc is an allocation in whose task the events happened.
func alloc(n uint64, client, desired, state string, failed bool, events ...*api.TaskEvent) *api.AllocationListStub {
	s := &api.TaskState{State: state, Failed: failed, Events: events}
	for _, e := range events {
		if e.Type == api.TaskStarted {
			s.StartedAt = time.Unix(0, e.Time)
		}
	}
	if state == "dead" && len(events) > 0 {
		s.FinishedAt = time.Unix(0, events[len(events)-1].Time)
	}
	return &api.AllocationListStub{
		ID: fmt.Sprintf("alloc-%d", n), CreateIndex: n, JobVersion: n - 1, ClientStatus: client, DesiredStatus: desired, NodeName: "node",
		TaskStates: map[string]*api.TaskState{"main": s},
	}
}

func TestHowAJobEnded(t *testing.T) {
	t.Parallel()
	started, killing := event(1, api.TaskStarted), event(2, api.TaskKilling)
	ended := func(code string, more ...string) *api.TaskEvent {
		return event(3, api.TaskTerminated, append([]string{"exit_code", code}, more...)...)
	}
	late := func(a *api.AllocationListStub) *api.AllocationListStub {
		a.ClientDescription = "allocation exceeded max_run_duration"
		return a
	}
	for _, tt := range []struct {
		name  string
		job   *api.Job
		alloc *api.AllocationListStub
		want  driver.State
		exit  int
	}{
		{"finished its work", job("dead", false), alloc(1, "complete", "run", "dead", false, started, ended("0")), driver.Succeeded, 0},
		{"finished its work and was stopped afterwards", job("dead", true), alloc(1, "complete", "stop", "dead", false, started, ended("0")), driver.Succeeded, 0},
		{"a replaced allocation ends as complete and has finished nothing", job("running", false), alloc(1, "complete", "stop", "dead", false, started, killing, ended("143", "signal", "15")), driver.Pending, -1},
		{"one that ends with 0 because it was replaced has finished nothing", job("running", false), alloc(1, "complete", "stop", "dead", false, started, killing, ended("0")), driver.Pending, -1},
		{"stopped by its owner", job("dead", true), alloc(1, "complete", "stop", "dead", false, started, killing, ended("137", "signal", "9")), driver.Cancelled, 137},
		{"failed", job("dead", false), alloc(1, "failed", "run", "dead", true, started, ended("7")), driver.Failed, 7},
		{"failed, and its policy has it placed again", job("pending", false), alloc(1, "failed", "run", "dead", true, started, ended("7")), driver.Pending, 7},
		{"failed before it was stopped", job("dead", true), alloc(1, "failed", "run", "dead", true, started, ended("7")), driver.Failed, 7},
		{"killed for memory, and oom_killed says no", job("dead", false), alloc(1, "failed", "run", "dead", true, started, ended("137", "signal", "9", "oom_killed", "false")), driver.MemoryExceeded, 137},
		{"killed for memory, and oom_killed says yes", job("dead", false), alloc(1, "failed", "run", "dead", true, started, ended("1", "oom_killed", "true")), driver.MemoryExceeded, 1},
		{"killed by Nomad is not killed for memory", job("dead", false), alloc(1, "failed", "run", "dead", true, started, killing, ended("137", "signal", "9")), driver.Failed, 137},
		{"over its time limit, which ends as complete", job("dead", false), late(alloc(1, "complete", "run", "dead", false, started, killing, ended("143"))), driver.TimeExceeded, 143},
		{"lost with its node", job("dead", false), alloc(1, "lost", "stop", "dead", false, started), driver.Lost, -1},
		{"its driver could not start it", job("dead", false), alloc(1, "failed", "run", "dead", true, event(1, api.TaskDriverFailure)), driver.NotStarted, -1},
		{"a node that is disconnected", job("running", false), alloc(1, "unknown", "run", "running", false, started), driver.Running, -1},
		{"waits for its restart in place", job("running", false), alloc(1, "pending", "run", "pending", false, started, ended("1"), event(4, api.TaskRestarting)), driver.Running, -1},
		{"placed and not begun", job("pending", false), alloc(1, "pending", "run", "pending", false), driver.Pending, -1},
		{"placed, not begun, and stopped", job("dead", true), alloc(1, "complete", "stop", "dead", false), driver.Cancelled, -1},
		{"runs", job("running", false), alloc(1, "running", "run", "running", false, started), driver.Running, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := view.Job(view.Input{ID: "train", Job: tt.job, Own: tt.job, Task: "main", Allocs: []*api.AllocationListStub{tt.alloc}})
			if got.State != tt.want {
				t.Errorf("state %s (%s), want %s", got.State, got.Detail, tt.want)
			}
			if tt.name == "stopped by its owner" && got.Detail != "its job was stopped" {
				t.Errorf("detail %q, want that its job was stopped", got.Detail)
			}
			if tt.want.Ended() && got.ExitCode != tt.exit {
				t.Errorf("exit code %d, want %d", got.ExitCode, tt.exit)
			}
		})
	}
}

func TestAJobThatWaitsSaysForWhat(t *testing.T) {
	t.Parallel()
	blocked := &api.Evaluation{FailedTGAllocs: map[string]*api.AllocationMetric{
		"g": {NodesEvaluated: 2, DimensionExhausted: map[string]int{"cores": 2}},
	}}
	j := job("pending", false)
	got, _ := view.Job(view.Input{ID: "train", Job: j, Own: j, Task: "main", Blocked: blocked})
	if got.State != driver.Pending || got.Detail != "waits for room: cores exhausted on 2 of 2 nodes" {
		t.Errorf("%s: %q, want what is exhausted", got.State, got.Detail)
	}
	j.Periodic = &api.PeriodicConfig{}
	if got, _ = view.Job(view.Input{ID: "train", Job: j, Own: j, Task: "main"}); got.State != driver.Pending || got.Detail != "a periodic job runs only as its children, each of which is its own job" {
		t.Errorf("%s: %q, want that its children run", got.State, got.Detail)
	}
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	started := event(1, api.TaskStarted)
	ended := event(3, api.TaskTerminated, "exit_code", "85")
	first := alloc(1, "failed", "run", "dead", true, started, ended)
	never := alloc(2, "complete", "stop", "dead", false)
	third := alloc(3, "running", "run", "running", false, event(5, api.TaskStarted), event(6, api.TaskTerminated, "exit_code", "1"), event(7, api.TaskRestarting), event(8, api.TaskStarted))
	again := alloc(4, "running", "run", "running", false, event(9, api.TaskStarted))
	again.JobVersion = third.JobVersion
	rerun := alloc(5, "running", "run", "running", false, event(11, api.TaskStarted))
	change := driver.Change{Cores: 2}
	j := job("running", false)
	in := view.Input{
		ID: "train", Job: j, Own: j, Task: "main", Allocs: []*api.AllocationListStub{first, never, third, again, rerun},
		Marks: map[uint64]spec.Mark{2: {Intent: "i", Cause: driver.CauseIntent, Change: change}}, Ignored: []string{rerun.ID},
	}
	got, known := view.Job(in)
	if len(got.Attempts) != 3 || got.Attempt != 3 {
		t.Fatalf("%d attempts, want 3: one that never began is none, a restart in place is the same, an accidental run is none", len(got.Attempts))
	}
	for i, want := range []driver.Cause{driver.CauseSubmitted, driver.CauseIntent, view.CauseRescheduled} {
		if a := got.Attempts[i]; a.Cause != want || a.Number != i+1 {
			t.Errorf("attempt %+v, want number %d and cause %s", a, i+1, want)
		}
	}
	if a := got.Attempts[1]; a.Change.Cores != 2 || a.Intent != "i" || a.Unit != "alloc-3.main" || a.Started.Unix() != 1005 || a.Crashes != 1 {
		t.Errorf("attempt %+v, want the change, its intent, its unit, its first start, and one crash", a)
	}
	if a := got.Attempts[0]; a.ExitCode != 85 || a.Crashes != 0 || a.Ended.Unix() != 1003 {
		t.Errorf("attempt %+v, want status 85 and its end", a)
	}
	if got.Change.Cores != 2 {
		t.Errorf("change %+v, want that of the present attempt, which has the version of the one before", got.Change)
	}
	// Nomad forgets allocations; what is known of them stays.
	in.Known, in.Allocs = known, []*api.AllocationListStub{again}
	if later, _ := view.Job(in); len(later.Attempts) != 3 || later.Attempts[1].Change.Cores != 2 {
		t.Errorf("attempts %+v, want those of before", later.Attempts)
	}
}

func TestSignalsAndLeavingAreSeenByTheNodesOwnClock(t *testing.T) {
	t.Parallel()
	a := alloc(1, "running", "run", "running", false, event(1, api.TaskStarted), event(2, api.TaskSignaling), event(4, api.TaskSignaling), event(5, api.TaskTerminated, "exit_code", "85"))
	since := time.Unix(1003, 0).UnixNano()
	if !view.Signaled(a, "main", since) || view.Signaled(a, "main", time.Unix(1004, 0).UnixNano()) {
		t.Error("want a signal since 3, and none since 4")
	}
	if code, left := view.Left(a, "main", since); !left || code != 85 {
		t.Errorf("left %v with %d, want with 85", left, code)
	}
	if _, left := view.Left(a, "main", time.Unix(1005, 0).UnixNano()); left {
		t.Error("it left before, not since")
	}
}

// Whatever Nomad shows, the attempts are numbered and an ended job has an end.
func TestEveryViewIsOne(t *testing.T) {
	t.Parallel()
	kinds := []string{api.TaskStarted, api.TaskTerminated, api.TaskKilling, api.TaskRestarting, api.TaskDriverFailure, api.TaskSignaling, "Unheard Of"}
	rapid.Check(t, func(t *rapid.T) {
		j := job(rapid.SampledFrom([]string{"pending", "running", "dead"}).Draw(t, "status"), rapid.Bool().Draw(t, "stop"))
		in := view.Input{ID: "train", Job: j, Own: j, Task: "main", Finished: rapid.Bool().Draw(t, "finished"), Goes: rapid.Bool().Draw(t, "goes")}
		for i := range rapid.IntRange(0, 4).Draw(t, "allocations") {
			var events []*api.TaskEvent
			for at := range rapid.IntRange(0, 6).Draw(t, "events") {
				events = append(events, event(10*i+at, rapid.SampledFrom(kinds).Draw(t, "kind"), "exit_code", rapid.SampledFrom([]string{"0", "1", "85", "137", "x"}).Draw(t, "code")))
			}
			in.Allocs = append(in.Allocs, alloc(uint64(i+1),
				rapid.SampledFrom([]string{"pending", "running", "complete", "failed", "lost", "unknown", "?"}).Draw(t, "client"),
				rapid.SampledFrom([]string{"run", "stop", "evict"}).Draw(t, "desired"),
				rapid.SampledFrom([]string{"pending", "running", "dead"}).Draw(t, "state"), rapid.Bool().Draw(t, "failed"), events...))
		}
		got, known := view.Job(in)
		again, _ := view.Job(func() view.Input { in.Known = known; return in }())
		a, _ := json.Marshal(got)   //nolint:errchkjson // plain values
		b, _ := json.Marshal(again) //nolint:errchkjson // plain values
		if string(a) != string(b) {
			t.Errorf("the second look differs:\n%s\n%s", a, b)
		}
		for i, attempt := range got.Attempts {
			if attempt.Number != i+1 || attempt.Cause == "" || attempt.Unit == "" {
				t.Errorf("attempt %+v, want number %d, a cause and a unit", attempt, i+1)
			}
		}
		if got.State.Ended() == got.Ended.IsZero() && len(got.Attempts) > 0 {
			t.Errorf("%s, ended %v", got.State, got.Ended)
		}
	})
}

func FuzzTaskOf(f *testing.F) {
	f.Add([]byte(`{"ClientStatus":"failed","TaskStates":{"main":{"State":"dead","Failed":true,"Events":[{"Type":"Terminated","Details":{"exit_code":"137"}}]}}}`))
	f.Add([]byte(`{"TaskStates":{"main":null}}`))
	f.Add([]byte(`{"TaskStates":{"main":{"Events":[null]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var a api.AllocationListStub
		if json.Unmarshal(data, &a) != nil {
			return
		}
		if view.Finished(&a, "main") && view.TaskOf(&a, "main").Killed {
			t.Error("finished and killed")
		}
		view.Again(&a, "main")
		view.Ending(&a, "main")
	})
}

func TestWhetherFinishedWorkRunsAgainInItsPlace(t *testing.T) {
	t.Parallel()
	start, done := event(1, api.TaskStarted), event(2, api.TaskTerminated, "exit_code", "0")
	failed := event(2, api.TaskTerminated, "exit_code", "85")
	anew := event(9, api.TaskStarted)
	for name, c := range map[string]struct {
		events []*api.TaskEvent
		status string
		want   bool
	}{
		"it was begun once":                              {[]*api.TaskEvent{start}, "running", false},
		"it did its work":                                {[]*api.TaskEvent{start, done}, "complete", false},
		"it did its work and was begun again":            {[]*api.TaskEvent{start, done, anew}, "running", true},
		"it did so and is over":                          {[]*api.TaskEvent{start, done, anew, done}, "complete", false},
		"it did so and does it a third time":             {[]*api.TaskEvent{start, done, anew, done, anew}, "running", true},
		"it left to be moved, and its policy began it":   {[]*api.TaskEvent{start, failed, event(3, api.TaskRestarting), anew}, "running", false},
		"it ended well because it was to restart":        {[]*api.TaskEvent{start, event(2, api.TaskRestartSignal), done, event(3, api.TaskRestarting), anew}, "running", false},
		"why it ended well was forgotten":                {[]*api.TaskEvent{done, anew}, "running", false},
		"it ended well because Nomad ended it":           {[]*api.TaskEvent{start, event(2, api.TaskKilling), done, anew}, "running", false},
		"it failed and was begun again without a policy": {[]*api.TaskEvent{start, failed, anew}, "running", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := view.Again(alloc(1, c.status, "run", "running", false, c.events...), "main"); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Children are of their parent's kind: what one taught is for the next.
func TestAChildOfNomadHasTheNameOfItsParent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, id, called, parent, want string }{
		{"a job", "train", "train", "", "train"},
		{"a job that is called otherwise", "train", "my job", "", "my job"},
		{"a dispatched child", "train/dispatch-1-a", "train/dispatch-1-a", "train", "train"},
		{"a periodic child", "train/periodic-1", "train/periodic-1", "train", "train"},
		{"a child that somebody gave a name", "train/periodic-1", "my job", "train", "my job"},
		{"a job whose own id has a slash", "a/b", "a/b", "", "a/b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := job("running", false)
			j.ID, j.Name, j.ParentID = &tt.id, &tt.called, &tt.parent
			if got, _ := view.Job(view.Input{ID: driver.JobID(tt.id), Job: j, Own: j, Task: "main"}); got.Name != tt.want {
				t.Errorf("its name is %q, want %q", got.Name, tt.want)
			}
		})
	}
}
