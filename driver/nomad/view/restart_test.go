package view_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"
	"pgregory.net/rapid"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

func rerendered(at int) *api.TaskEvent {
	e := event(at, api.TaskRestartSignal)
	e.DisplayMessage = "Template with change_mode restart re-rendered"
	return e
}

func TestARestartWithOtherVariablesIsAnotherAttemptInTheSameAllocation(t *testing.T) {
	t.Parallel()
	a := alloc(1, "running", "run", "running", false,
		event(1, api.TaskStarted), rerendered(4), event(5, api.TaskTerminated, "exit_code", "85"), event(6, api.TaskRestarting), event(7, api.TaskStarted))
	restart, ok, _ := view.Has(a, "main", event(3, "").Time)
	if !ok || restart.At != event(7, "").Time || restart.Left != event(5, "").Time || restart.Exit != 85 {
		t.Fatalf("%+v, %v", restart, ok)
	}
	restart.Mark = spec.Mark{Intent: "more", Cause: driver.CauseIntent, Change: driver.Change{Env: map[string]string{"A": "1"}}}
	in := view.Input{ID: "train", Job: job("running", false), Own: job("running", false), Task: "main", Allocs: []*api.AllocationListStub{a}}
	before, known := view.Job(in)
	if len(before.Attempts) != 1 || before.Attempts[0].ExitCode != -1 {
		t.Fatalf("before: %+v", before.Attempts)
	}
	in.Restarts, in.Known = []view.Restart{restart}, known
	at := func(s int64) time.Time { return time.Unix(1000+s, 0).UTC() }
	want := []driver.Attempt{
		{Number: 1, Started: at(1), Ended: at(5), ExitCode: 85, Cause: driver.CauseSubmitted, Unit: "alloc-1.main"},
		{Number: 2, Started: at(7), ExitCode: -1, Cause: driver.CauseIntent, Intent: "more", Change: restart.Mark.Change, Unit: "alloc-1.main"},
	}
	got, known := view.Job(in)
	if diff := cmp.Diff(want, got.Attempts); diff != "" || got.Attempt != 2 || got.Change.Env["A"] != "1" {
		t.Errorf("attempt %d under %+v (-want +got):\n%s", got.Attempt, got.Change, diff)
	}
	// What is known stays known, as a record and where Nomad has forgotten the allocation.
	data, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	in.Known = nil
	if err := json.Unmarshal(data, &in.Known); err != nil {
		t.Fatal(err)
	}
	in.Allocs = nil
	again, _ := view.Job(in)
	if diff := cmp.Diff(want, again.Attempts); diff != "" {
		t.Errorf("from a record (-want +got):\n%s", diff)
	}
}

func TestARestartForATemplateIsNoKillForMemory(t *testing.T) {
	t.Parallel()
	a := alloc(1, "pending", "run", "pending", false,
		event(1, api.TaskStarted), rerendered(2), event(3, api.TaskTerminated, "exit_code", "137", "signal", "9"), event(4, api.TaskRestarting))
	if got := view.TaskOf(a, "main"); got.Memory || !got.Killed || !got.Waits {
		t.Errorf("%+v, want a run that Nomad ended", got)
	}
}

// 2.4: Nomad's client makes up the environment of a run before it says that it started.
func TestAStartCountsWhereItCertainlyHasWhatWasRendered(t *testing.T) {
	t.Parallel()
	restarting := func(at, delay int) *api.TaskEvent {
		return event(at, api.TaskRestarting, "start_delay", fmt.Sprint(int64(delay)*int64(time.Second)))
	}
	const rendered = 10
	for name, tt := range map[string]struct {
		state             string
		events            []*api.TaskEvent
		certain, doubtful bool
	}{
		"it runs as before":                               {"running", []*api.TaskEvent{event(1, api.TaskStarted)}, false, false},
		"its template restarted it":                       {"running", []*api.TaskEvent{event(1, api.TaskStarted), rerendered(11), event(12, api.TaskTerminated), restarting(12, 0), event(13, api.TaskStarted)}, true, false},
		"its template is restarting it":                   {"running", []*api.TaskEvent{event(1, api.TaskStarted), rerendered(11)}, false, false},
		"another template restarted it before":            {"running", []*api.TaskEvent{event(1, api.TaskStarted), rerendered(4), event(5, api.TaskTerminated), restarting(5, 0), event(6, api.TaskStarted)}, false, false},
		"it was to wait until long after":                 {"running", []*api.TaskEvent{event(1, api.TaskStarted), event(8, api.TaskTerminated), restarting(8, 5), event(14, api.TaskStarted)}, true, false},
		"it waits":                                        {"pending", []*api.TaskEvent{event(1, api.TaskStarted), event(8, api.TaskTerminated), restarting(8, 5)}, false, false},
		"it was being started at that moment":             {"running", []*api.TaskEvent{event(1, api.TaskStarted), event(8, api.TaskTerminated), restarting(8, 2), event(11, api.TaskStarted)}, false, true},
		"it was being started, and was restarted for it":  {"running", []*api.TaskEvent{event(1, api.TaskStarted), event(8, api.TaskTerminated), restarting(8, 2), event(11, api.TaskStarted), event(12, api.TaskRestartSignal), event(13, api.TaskStarted)}, true, false},
		"it was being started at that moment and is over": {"dead", []*api.TaskEvent{event(1, api.TaskStarted), event(8, api.TaskTerminated), restarting(8, 2), event(11, api.TaskStarted), event(12, api.TaskTerminated)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			restart, certain, doubtful := view.Has(alloc(1, "running", "run", tt.state, false, tt.events...), "main", event(rendered, "").Time)
			if certain != tt.certain || doubtful != tt.doubtful || certain && restart.At != tt.events[len(tt.events)-1].Time {
				t.Errorf("certain %v, doubtful %v, %+v", certain, doubtful, restart)
			}
		})
	}
}

// Whatever restarts there were, attempts are numbered without a gap and do not overlap.
func TestAttemptsOfRestartsDoNotOverlap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 4).Draw(t, "restarts")
		in := view.Input{ID: "train", Job: job("running", false), Own: job("running", false), Task: "main"}
		events := []*api.TaskEvent{event(1, api.TaskStarted)}
		at := 1
		for range n {
			left := at + rapid.IntRange(1, 5).Draw(t, "runs")
			at = left + rapid.IntRange(0, 5).Draw(t, "waits")
			restart := view.Restart{Alloc: "alloc-1", At: event(at, "").Time, Left: event(left, "").Time}
			if rapid.Bool().Draw(t, "unknown") {
				restart.Left = 0
			}
			in.Restarts = append(in.Restarts, restart)
		}
		in.Allocs = []*api.AllocationListStub{alloc(1, "running", "run", "running", false, events...)}
		got, _ := view.Job(in)
		if len(got.Attempts) != n+1 {
			t.Fatalf("%d attempts of %d restarts", len(got.Attempts), n)
		}
		for i, a := range got.Attempts {
			if a.Number != i+1 || i > 0 && got.Attempts[i-1].Ended.After(a.Started) || i < n && a.Ended.Before(a.Started) {
				t.Fatalf("attempt %d of %+v", i+1, got.Attempts)
			}
		}
	})
}
