package api

import "errors"

// Errors of a call, by what the caller can do about it. The client wraps them
// with what was asked and what the exporter answered.
var (
	// ErrNotFound: the exporter does not see this job, or has forgotten it.
	ErrNotFound = errors.New("not known to the exporter")
	// ErrDenied: the caller may not see this, or is not inside the job.
	ErrDenied = errors.New("denied by the exporter")
	// ErrInvalid: the request can never succeed as it is.
	ErrInvalid = errors.New("invalid request to the exporter")
	// ErrUnavailable: no exporter answers, or it is in trouble; it may succeed later.
	ErrUnavailable = errors.New("exporter unavailable")
)

// Problem is the body of every answer that is not a success.
type Problem struct {
	Error string `json:"error"`
}
