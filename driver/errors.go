package driver

import "errors"

// Errors that a caller can act on. Drivers wrap them with what was attempted.

// The job is not there, or not as expected: re-read before anything else.
var (
	ErrNotFound = errors.New("job not found")
	ErrConflict = errors.New("job changed meanwhile")
)

// ArrayError is ErrNotFound for the number of a job array: only its tasks are jobs.
type ArrayError struct{ Array, Task JobID }

// Error names one of the tasks.
func (e ArrayError) Error() string {
	return string(e.Array) + " is an array, whose tasks are jobs such as " + string(e.Task)
}

// Unwrap returns ErrNotFound.
func (ArrayError) Unwrap() error { return ErrNotFound }

// The request can never succeed as it is.
var (
	ErrInvalid     = errors.New("invalid job")
	ErrUnsupported = errors.New("not supported by the scheduler")
	ErrDenied      = errors.New("denied by the scheduler")
)

// The request may succeed later.
var (
	ErrTransient = errors.New("scheduler unavailable")
	// ErrNoRoom means that the cluster has no room for the change now, or takes no more jobs
	// of the user. Nothing was changed.
	ErrNoRoom = errors.New("no room")
	// ErrUnknown means that it is unknown whether the step was taken, as after a
	// time-out: look before acting again.
	ErrUnknown = errors.New("outcome unknown")
)
