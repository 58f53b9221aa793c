package view

import (
	"fmt"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

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
// itself with status 0, was not told to restart, and began once more. A client that dies
// between the end of a task and noting it does that when it is back.
func Again(a *api.AllocationListStub, task string) bool {
	if Over(a) {
		return false
	}
	// Nomad keeps ten events: what stands before the first start is not believed.
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

// ending says how an allocation ended that nothing follows. Of a wrapped command it is
// the wrapper who says that there is none.
func ending(a *api.AllocationListStub, task string, wrapped bool) (driver.State, string) {
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
		return driver.Cancelled, a.DesiredDescription
	}
	return driver.Failed, fmt.Sprintf("status %d", t.Exit)
}
