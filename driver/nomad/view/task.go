package view

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
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

// after is the first event of a kind after a time of the node's clock; nil:
// none.
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

// Restarted reports whether the task was to be restarted since.
func Restarted(a *api.AllocationListStub, name string, since int64) bool {
	return after(a, name, api.TaskRestartSignal, since) != nil
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

// timedOut is how Nomad's client describes an allocation over its max_run_duration.
const timedOut = "allocation exceeded max_run_duration"

// Over reports whether nothing of an allocation runs any more.
func Over(a *api.AllocationListStub) bool {
	switch a.ClientStatus {
	case api.AllocClientStatusComplete, api.AllocClientStatusFailed, api.AllocClientStatusLost:
		return true
	}
	return false
}

// Finished reports whether the allocation did its work: its task ended by itself with
// status 0, not because Nomad replaced, stopped or limited it.
func Finished(a *api.AllocationListStub, task string) bool {
	if a.ClientStatus != api.AllocClientStatusComplete || a.ClientDescription == timedOut {
		return false
	}
	t := TaskOf(a, task)
	return t.Exit == 0 && !t.Killed && !t.Failed && !t.Began.IsZero()
}

// Again reports whether an allocation whose task did its work runs it again: it ended by
// itself with status 0, was not asked to restart, and began once more. A client that dies
// between the end of a task and noting it does that when it is back.
func Again(a *api.AllocationListStub, task string) bool {
	if Over(a) {
		return false
	}
	// Nomad keeps ten events: what is before the first start is not believed.
	ran, killing, done, again := false, false, false, false
	for e := range events(a, task) {
		switch e.Type {
		case api.TaskKilling, api.TaskRestartSignal:
			killing = true
		case api.TaskRestarting:
			killing, done = false, false
		case api.TaskTerminated:
			done = ran && exitCode(e) == 0 && !killing
		case api.TaskStarted:
			ran, killing, again = true, false, again || done
		}
	}
	return again
}

// noCommand and notExecutable are with what a shell ends that cannot run a command.
const notExecutable, noCommand = 126, 127

// ending says how an allocation ended that nothing follows. For a wrapped command the
// wrapper says that there is none.
func ending(a *api.AllocationListStub, task string, wrapped, stopped bool) (driver.State, string) {
	t := TaskOf(a, task)
	switch {
	case a.ClientDescription == timedOut:
		return driver.TimeExceeded, a.ClientDescription
	case Finished(a, task):
		return driver.Succeeded, ""
	case a.ClientStatus == api.AllocClientStatusLost:
		return driver.Lost, "its node was lost: " + a.ClientDescription
	case t.Began.IsZero() && a.ClientStatus == api.AllocClientStatusFailed:
		return driver.NotStarted, t.Why
	case wrapped && (t.Exit == noCommand || t.Exit == notExecutable):
		return driver.NotStarted, fmt.Sprintf("the command is not there or cannot be executed: status %d", t.Exit)
	case t.Memory:
		return driver.MemoryExceeded, fmt.Sprintf("ended by SIGKILL, which Nomad did not send: status %d", t.Exit)
	case a.ClientStatus == api.AllocClientStatusComplete && (t.Killed || a.DesiredStatus == api.AllocDesiredStatusStop):
		if stopped { // Nomad says that a job update did it
			return driver.Cancelled, "its job was stopped"
		}
		return driver.Cancelled, a.DesiredDescription
	}
	return driver.Failed, fmt.Sprintf("status %d", t.Exit)
}
