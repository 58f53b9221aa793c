package task

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/nomad/api"
)

// event is one with its details in pairs.
func event(kind, message string, details ...string) *api.TaskEvent {
	e := &api.TaskEvent{Type: kind, Time: time.Now().UnixNano(), DisplayMessage: message, Details: map[string]string{}}
	for i := 0; i < len(details); i += 2 {
		e.Details[details[i]] = details[i+1]
	}
	return e
}

func received() *api.TaskEvent { return event(api.TaskReceived, "Task received by client") }
func started() *api.TaskEvent  { return event(api.TaskStarted, "Task started by client") }
func killed() *api.TaskEvent   { return event(api.TaskKilled, "Task successfully killed") }

func buildingTaskDir() *api.TaskEvent {
	const text = "Building Task Directory"
	e := event(api.TaskSetup, text, "message", text)
	e.Message = text
	return e
}

// failure is what went wrong before there was a process.
func failure(kind string, err error) *api.TaskEvent {
	e := event(kind, err.Error())
	switch kind {
	case api.TaskSetupFailure:
		e.SetupError = err.Error()
	case api.TaskFailedValidation:
		e.ValidationError = err.Error()
	default:
		e.DriverError = err.Error()
	}
	return e
}

func terminated(o outcome) *api.TaskEvent {
	code, signal := strconv.Itoa(o.code), strconv.Itoa(o.signal)
	text := "Exit Code: " + code
	if o.signal != 0 {
		text += ", Signal: " + signal
	}
	e := event(api.TaskTerminated, text, "exit_code", code, "signal", signal, "oom_killed", "false")
	e.ExitCode, e.Signal = o.code, o.signal
	return e
}

func killing(timeout time.Duration) *api.TaskEvent {
	e := event(api.TaskKilling, fmt.Sprintf("Sent interrupt. Waiting %v before force killing", timeout), "kill_timeout", timeout.String())
	e.KillTimeout = timeout
	return e
}

func signaling(signal string) *api.TaskEvent {
	return event(api.TaskSignaling, "Task being sent a signal", "signal", signal)
}

func shutdownDelay(d time.Duration) *api.TaskEvent {
	return event("Waiting for shutdown delay", fmt.Sprintf("Waiting for shutdown_delay of %s before killing the task.", d))
}

func restartSignaled(reason string) *api.TaskEvent {
	e := event(api.TaskRestartSignal, reason, "restart_reason", reason)
	e.RestartReason = reason
	return e
}

func restarting(reason string, delay time.Duration) *api.TaskEvent {
	e := event(api.TaskRestarting, fmt.Sprintf("Task restarting in %v", delay), "restart_reason", reason, "start_delay", strconv.FormatInt(int64(delay), 10))
	e.StartDelay, e.RestartReason = int64(delay), reason
	return e
}

func notRestarting(reason string) *api.TaskEvent {
	e := event(api.TaskNotRestarting, reason, "restart_reason", reason, "fails_task", "true")
	e.RestartReason, e.FailsTask = reason, true
	return e
}
