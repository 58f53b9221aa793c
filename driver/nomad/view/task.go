package view

import (
	"iter"
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"
)

// Task is what the events of an allocation's main task say, those of its last run
// first of all.
type Task struct {
	State    string // pending, running, dead
	Failed   bool
	Began    time.Time // of the first start; zero: it never began
	Finished time.Time // it ended and is not started again
	Exit     int       // of the last run that ended; -1 unknown, or none did
	Killed   bool      // Nomad ended the last run
	Memory   bool      // the last run was killed for memory
	Waits    bool      // Nomad starts it again in place, after a delay
	Last     int64     // time of the last event by the node's clock, in nanoseconds
	Why      string    // the last thing that failed, in Nomad's words
}

// oomStatus is that of a process that was ended by SIGKILL.
const oomStatus = 137

// TaskOf reads the state of the task.
func TaskOf(a *api.AllocationListStub, name string) Task {
	t := Task{State: "pending", Exit: -1}
	s := a.TaskStates[name]
	if s == nil {
		return t
	}
	t.State, t.Failed, t.Began, t.Finished = s.State, s.Failed, s.StartedAt, s.FinishedAt
	killing := false
	for e := range events(a, name) {
		t.Last = max(t.Last, e.Time)
		switch e.Type {
		case api.TaskStarted:
			at := time.Unix(0, e.Time).UTC()
			if t.Began.IsZero() || at.Before(t.Began) {
				t.Began = at
			}
			t.Exit, t.Killed, t.Memory, t.Waits, killing = -1, false, false, false, false
		case api.TaskKilling, api.TaskRestartSignal:
			killing = true
		case api.TaskTerminated:
			t.Exit = exitCode(e)
			t.Killed = killing
			t.Memory = e.Details["oom_killed"] == "true" || t.Exit == oomStatus && !killing
		case api.TaskRestarting:
			t.Waits = true
			killing = false
		case api.TaskDriverFailure, api.TaskSetupFailure, api.TaskFailedValidation, api.TaskArtifactDownloadFailed:
			t.Why = e.DisplayMessage
		}
	}
	if t.State != "pending" {
		t.Waits = false
	}
	return t
}

// exitCode is the status with which a task ended, 128 + N for signal N.
func exitCode(e *api.TaskEvent) int {
	code, signal := e.ExitCode, e.Signal
	if n, err := strconv.Atoi(e.Details["exit_code"]); err == nil {
		code = n
	}
	if n, err := strconv.Atoi(e.Details["signal"]); err == nil {
		signal = n
	}
	if code == 0 && signal > 0 {
		return 128 + signal
	}
	return code
}

// events are those of a task that Nomad keeps, the oldest first.
func events(a *api.AllocationListStub, name string) iter.Seq[*api.TaskEvent] {
	return func(yield func(*api.TaskEvent) bool) {
		if s := a.TaskStates[name]; s != nil {
			for _, e := range s.Events {
				if e != nil && !yield(e) {
					return
				}
			}
		}
	}
}

// after is the first event of a kind behind a time, which is one of the node's clock; nil:
// there is none.
func after(a *api.AllocationListStub, name, kind string, since int64) *api.TaskEvent {
	for e := range events(a, name) {
		if e.Type == kind && e.Time > since {
			return e
		}
	}
	return nil
}

// Signaled reports whether Nomad was asked to send a signal since the time.
func Signaled(a *api.AllocationListStub, name string, since int64) bool {
	return after(a, name, api.TaskSignaling, since) != nil
}

// Left reports with which status the task's run that went on at the time has ended
// since; false: it goes on.
func Left(a *api.AllocationListStub, name string, since int64) (int, bool) {
	if e := after(a, name, api.TaskTerminated, since); e != nil {
		return exitCode(e), true
	}
	return -1, false
}

// Ending reports whether Nomad has begun to end the task's last run, which is still there,
// and nothing was signalled to it since.
func Ending(a *api.AllocationListStub, name string) bool {
	ending := false
	for e := range events(a, name) {
		switch e.Type {
		case api.TaskKilling:
			ending = true
		case api.TaskStarted, api.TaskTerminated, api.TaskSignaling:
			ending = false
		}
	}
	return ending
}
