package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func (h handler) off(req *http.Request) (any, error) {
	job, who, err := h.owned(req)
	if err != nil {
		return nil, err
	}
	// A failed audit is an error, and tuning is off all the same.
	err = h.d.audit.append(req.Context(), reconcile.Audit{
		At: time.Now(), Actor: who.Name, Job: string(job.ID), Action: "off", Reason: tuning.ReasonOff,
	})
	err = errors.Join(err, h.d.pauses.switchOff(string(job.ID), who.Name))
	h.d.queue.Add(job.ID)
	return nil, err
}

func (h handler) stop(req *http.Request) (any, error) {
	job, who, err := h.owned(req)
	if err != nil {
		return nil, err
	}
	err = h.d.audit.append(req.Context(), reconcile.Audit{
		At: time.Now(), Actor: who.Name, Job: string(job.ID), Action: "stop", Reason: tuning.ReasonCancelled,
	})
	stopped := h.d.driver.Stop(req.Context(), job.ID)
	if h.d.driver.Capabilities().UsersSubmit && errors.Is(stopped, driver.ErrDenied) {
		stopped = errUsersStop
	}
	return nil, errors.Join(err, stopped)
}

func (h handler) pauses(req *http.Request) (any, error) {
	who, err := h.caller(req)
	if err != nil {
		return nil, err
	}
	// Others do not see what a user paused of his own.
	return slices.DeleteFunc(h.d.pauses.list(), func(x Pause) bool {
		switch x.Scope {
		case ScopeUser:
			return !who.May(x.Name)
		case ScopeJob:
			return x.By != who.Name && !who.May(h.d.records.owner(driver.JobID(x.Name)))
		}
		return false
	}), nil
}

func (h handler) pause(req *http.Request) (any, error) {
	var x Pause
	if err := json.NewDecoder(io.LimitReader(req.Body, 1<<16)).Decode(&x); err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	who, err := h.mayPause(req, x.Scope, x.Name)
	if err != nil {
		return nil, err
	}
	x.By, x.At = who.Name, time.Now()
	// A failed audit is an error, and the pause is in force all the same.
	err = h.auditPause(req.Context(), who, "pause", x.Scope, x.Name)
	return nil, errors.Join(err, h.d.pauses.put(x))
}

func (h handler) resume(req *http.Request) (any, error) {
	scope, name := req.URL.Query().Get("scope"), req.URL.Query().Get("name")
	who, err := h.mayPause(req, scope, name)
	if err != nil {
		return nil, err
	}
	if err := h.auditPause(req.Context(), who, "resume", scope, name); err != nil {
		return nil, err
	}
	return nil, h.d.pauses.drop(scope, name)
}

// mayPause returns the caller if he may change this pause. Root and the controller's own
// user may change every pause; others may change their own pauses of their own jobs.
func (h handler) mayPause(req *http.Request, scope, name string) (peer.Peer, error) {
	who, err := h.caller(req)
	if err != nil {
		return who, err
	}
	if !slices.Contains(Scopes(), scope) {
		return who, fmt.Errorf("%w: scope %q; want one of %v", errInput, scope, Scopes())
	}
	if (scope == ScopeCluster) != (name == "") {
		return who, fmt.Errorf("%w: scope %s and name %q do not go together", errInput, scope, name)
	}
	if who.Privileged() {
		return who, nil
	}
	own := false
	switch scope {
	case ScopeUser:
		own = who.Name == name
	case ScopeJob:
		job, err := h.d.driver.Get(req.Context(), driver.JobID(name))
		own = err == nil && who.May(job.Owner)
	}
	if !own {
		return who, errDenied
	}
	if x, on := h.d.pauses.get(scope, name); on && x.By != who.Name {
		return who, fmt.Errorf("%w: %s paused it", errDenied, x.By)
	}
	return who, nil
}

func (h handler) auditPause(ctx context.Context, who peer.Peer, action, scope, name string) error {
	return h.d.audit.append(ctx, reconcile.Audit{
		At: time.Now(), Actor: who.Name, Job: scope + "/" + name, Action: action, Reason: tuning.ReasonPaused,
	})
}
