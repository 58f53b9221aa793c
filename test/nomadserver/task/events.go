package task

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
)

// event is one that says nothing but its type.
func event(kind string) *api.TaskEvent {
	e := &api.TaskEvent{Type: kind, Time: time.Now().UnixNano(), Details: map[string]string{}}
	switch kind {
	case api.TaskReceived:
		e.DisplayMessage = "Task received by client"
	case api.TaskStarted:
		e.DisplayMessage = "Task started by client"
	case api.TaskKilled:
		e.DisplayMessage = "Task successfully killed"
	}
	return e
}

func buildingTaskDir() *api.TaskEvent {
	e := event(api.TaskSetup)
	e.Message = "Building Task Directory"
	e.DisplayMessage = e.Message
	e.Details["message"] = e.Message
	return e
}

// failure is what went wrong before there was a process.
func failure(kind string, err error) *api.TaskEvent {
	e := event(kind)
	e.DisplayMessage = err.Error()
	switch kind {
	case api.TaskSetupFailure:
		e.SetupError = err.Error()
		e.Details["setup_error"] = err.Error()
	case api.TaskFailedValidation:
		e.ValidationError = err.Error()
		e.Details["validation_error"] = err.Error()
	default:
		e.DriverError = err.Error()
		e.Details["driver_error"] = err.Error()
	}
	return e
}

func terminated(o outcome) *api.TaskEvent {
	e := event(api.TaskTerminated)
	e.ExitCode, e.Signal = o.code, o.signal
	e.Details["exit_code"], e.Details["signal"], e.Details["oom_killed"] = strconv.Itoa(o.code), strconv.Itoa(o.signal), "false"
	parts := []string{"Exit Code: " + strconv.Itoa(o.code)}
	if o.signal != 0 {
		parts = append(parts, "Signal: "+strconv.Itoa(o.signal))
	}
	if o.err != nil {
		e.Message = o.err.Error()
		e.Details["exit_message"] = e.Message
		parts = append(parts, fmt.Sprintf("Exit Message: %q", e.Message))
	}
	e.DisplayMessage = strings.Join(parts, ", ")
	return e
}

func killing(timeout time.Duration) *api.TaskEvent {
	e := event(api.TaskKilling)
	e.KillTimeout = timeout
	e.Details["kill_timeout"] = timeout.String()
	e.DisplayMessage = fmt.Sprintf("Sent interrupt. Waiting %v before force killing", timeout)
	return e
}

func signaling(sig string) *api.TaskEvent {
	e := event(api.TaskSignaling)
	e.Details["signal"] = sig
	e.DisplayMessage = "Task being sent a signal"
	return e
}

func shutdownDelay(d time.Duration) *api.TaskEvent {
	e := event("Waiting for shutdown delay")
	e.DisplayMessage = fmt.Sprintf("Waiting for shutdown_delay of %s before killing the task.", d)
	return e
}

func restartSignaled(reason string) *api.TaskEvent {
	e := event(api.TaskRestartSignal)
	e.RestartReason = reason
	e.Details["restart_reason"] = e.RestartReason
	e.DisplayMessage = e.RestartReason
	return e
}

func restarting(reason string, delay time.Duration) *api.TaskEvent {
	e := event(api.TaskRestarting)
	e.StartDelay, e.RestartReason = int64(delay), reason
	e.Details["start_delay"], e.Details["restart_reason"] = strconv.FormatInt(int64(delay), 10), reason
	e.DisplayMessage = fmt.Sprintf("Task restarting in %v", delay)
	if reason != "" && reason != withinPolicy {
		e.DisplayMessage = reason + " - " + e.DisplayMessage
	}
	return e
}

func notRestarting(reason string) *api.TaskEvent {
	e := event(api.TaskNotRestarting)
	e.RestartReason, e.FailsTask = reason, true
	e.Details["restart_reason"], e.Details["fails_task"] = reason, "true"
	e.DisplayMessage = reason
	return e
}
