package nomadserver

import (
	"context"
	"io"
	"net/http"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/acl"
	"pitchpipe/test/nomadserver/jobspec"
	"pitchpipe/test/nomadserver/task"
)

// Task is a task that was started. Its methods are safe for concurrent use.
type Task interface {
	// Signal sends a signal by its name, with or without SIG.
	Signal(sig string) error
	// Kill begins the end: kill_signal, after kill_timeout SIGKILL. It returns at
	// once, and may be called again.
	Kill()
	// Restart ends the process and starts it again in place.
	Restart() error
	// Done is closed when the task has ended for good and changed was told so.
	Done() <-chan struct{}
	// Logs reads stdout or stderr from a place on; with follow until Done.
	Logs(stream string, offset int64, follow bool) io.ReadCloser
	// PIDs lists the processes that run now.
	PIDs() []int
}

// StartTask starts a task. changed is told every new state, one at a time, each with
// its full list of events; the last has State "dead". When ctx ends the processes are
// killed at once.
type StartTask func(ctx context.Context, s task.Spec, changed func(api.TaskState)) (Task, error)

// Variables are those that /v1/var serves.
type Variables interface {
	http.Handler
	task.Variables
}

// ParseJob reads a job file for /v1/jobs/parse.
type ParseJob func(jobspec.Input) (*api.Job, error)

// Authority decides what a token may and serves /v1/acl/. What belongs to no
// namespace is asked for with namespace "" as "node:read", "agent:read",
// "operator:read" or "operator:write".
type Authority interface {
	http.Handler
	Allows(token, namespace, capability string) bool
	AllowsVariable(token, namespace, path, capability string) bool
	// Identify gives a task a token of its own, Forget takes those of an allocation.
	Identify(acl.Claim) string
	Forget(alloc string)
}
