package broker

import (
	"errors"
	"net/http"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/slurmctl"
)

// The verbs, which are paths too: POST /v1/VERB.
const (
	verbScript  = "script"
	verbSignal  = "signal"
	verbRequeue = string(slurmctl.Requeue)
	verbDiscard = string(slurmctl.Discard)
	verbUpdate  = "update"
	verbRelease = string(slurmctl.Release)
	verbRerun   = string(slurmctl.Rerun)
	verbMay     = "may"
	verbAdvise  = "advise"
	verbOverrun = "overrun"
)

// Bounds of what is sent.
const (
	maxRequest  = 16 << 10
	maxResponse = 16 << 20 // Slurm takes scripts of 4 MiB
)

type request struct {
	Job    string           `json:"job"`
	Signal string           `json:"signal,omitempty"`
	Update *slurmctl.Update `json:"update,omitempty"`
	Advice *driver.Advice   `json:"advice,omitempty"`
}

type response struct {
	Script []byte `json:"script,omitempty"`
	Kind   string `json:"kind,omitempty"` // of the error
	Error  string `json:"error,omitempty"`
}

// kind is one of package driver's errors as it goes over the socket.
type kind struct {
	word   string
	status int
	err    error
}

func kinds() []kind {
	return []kind{
		{"not-found", http.StatusNotFound, driver.ErrNotFound},
		{"conflict", http.StatusConflict, driver.ErrConflict},
		{"invalid", http.StatusBadRequest, driver.ErrInvalid},
		{"unsupported", http.StatusUnprocessableEntity, driver.ErrUnsupported},
		{"denied", http.StatusForbidden, driver.ErrDenied},
		{"unknown", http.StatusGatewayTimeout, driver.ErrUnknown},
		{"transient", http.StatusServiceUnavailable, driver.ErrTransient},
	}
}

// kindOf is the kind of an error. One that is not of package driver is transient:
// nothing was done for it.
func kindOf(err error) kind {
	all := kinds()
	for _, k := range all {
		if errors.Is(err, k.err) {
			return k
		}
	}
	return all[len(all)-1]
}

// remote is an error that came over the socket.
type remote struct {
	text  string
	cause error
}

// Error is what the broker said.
func (r *remote) Error() string { return "broker: " + r.text }

// Unwrap is one of package driver's errors.
func (r *remote) Unwrap() error { return r.cause }
