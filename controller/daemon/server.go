package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/trials"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
)

// maxFile bounds a job file that is only read, of 4 MiB in base64, and maxRequest one that is submitted, with the
// environment.
const (
	maxFile    = 6 << 20
	maxRequest = 1 << 20
)

var (
	errDenied = errors.New("only the job's owner or root may do this")
	errInput  = errors.New("invalid request")

	errUsersSubmit = errors.New("the job file is valid, but its user must submit it")
	errUsersStop   = errors.New("this controller may not stop the job, but its user may")
	errDeregister  = errors.New("this controller's token may not deregister the job, but its user's may")
)

// request is one call of the API by a known caller.
type request struct {
	*http.Request
	d   *Daemon
	who peer.Peer
	job driver.Job // that the path names
}

// stream is an answer that is written piece by piece.
type stream struct {
	kind  string
	write func(io.Writer) error
}

func (d *Daemon) handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(request) (any, error){
		"GET " + api.PathJobs:         request.jobs,
		"POST " + api.PathJobs:        request.submit,
		"POST " + api.PathValidate:    request.validate,
		"POST " + api.PathHeadStarts:  request.headStart,
		"GET " + api.PathJob:          request.status,
		"GET " + api.PathExplain:      request.explain,
		"GET " + api.PathLogs:         request.logs,
		"POST " + api.PathOff:         request.off,
		"POST " + api.PathStop:        request.stop,
		"GET " + api.PathHistory:      request.history,
		"GET " + api.PathKnowledge:    request.knowledge,
		"GET " + api.PathObservations: request.observations,
		"GET " + api.PathReport:       request.report,
		"GET " + api.PathAdvice:       request.advice,
		"GET " + api.PathPauses:       request.pauses,
		"POST " + api.PathPauses:      request.pause,
		"DELETE " + api.PathPauses:    request.resume,

		"GET " + api.PathSearches:      request.searchList,
		"POST " + api.PathSearches:     request.newSearch,
		"GET " + api.PathSearch:        request.oneSearch,
		"POST " + api.PathSearchStop:   request.stopSearch,
		"POST " + api.PathSearchResume: request.resumeSearch,
	} {
		changes := !strings.HasPrefix(pattern, "GET ") && !strings.HasSuffix(pattern, api.PathValidate)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			out, err := d.serve(req, changes, serve)
			d.answer(w, out, err)
		})
	}
	mux.Handle("GET "+api.PathMetrics, metrics)
	return mux
}

// serve finds out who asks, and about which job, before it lets a request through.
func (d *Daemon) serve(req *http.Request, changes bool, serve func(request) (any, error)) (any, error) {
	ctx := req.Context()
	if changes {
		if err := d.candidate.mayChange(ctx); err != nil {
			return nil, err
		}
	}
	d.candidate.refresh(ctx, d)
	who, err := peer.From(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDenied, err)
	}
	r := request{Request: req, d: d, who: known(d.cfg, who)}
	if id := driver.JobID(req.PathValue("id")); id != "" {
		r.job, err = d.driver.Get(ctx, id)
		if errors.Is(err, driver.ErrNotFound) && d.advisor != nil && req.Pattern == "POST "+api.PathOff {
			if j, ok := d.advisor.Job(id); ok { // no one tunes it, and its owner wants no advice either
				r.job, err = j, nil
			}
		}
		if errors.Is(err, driver.ErrNotFound) && !changes && req.Pattern != "GET "+api.PathLogs {
			if rec, unknown := d.records.Load(ctx, id); unknown == nil && rec.Phase.Over() && !rec.Pruned {
				r.job, err = jobOf(rec), nil
			}
		}
		array, several := errors.AsType[driver.ArrayError](err)
		if several {
			r.job, err = d.driver.Get(ctx, array.Task)
		}
		switch {
		case several && err == nil && r.who.May(r.job.Owner):
			return nil, array
		case several && err == nil, errors.Is(err, driver.ErrNotFound):
			return nil, noJob(id)
		case err != nil:
			return nil, err
		case !r.who.May(r.job.Owner):
			return nil, errDenied
		}
	}
	return serve(r)
}

// known adds the namespaces of Nomad that the configuration gives to a caller: anyone can write
// an owner into a job file.
func known(cfg config.Config, who peer.Peer) peer.Peer {
	if cfg.Driver != "nomad" {
		return who // owners are users there
	}
	for _, p := range cfg.Nomad.People {
		if p.Name == "*" || p.Name == who.Name {
			who = who.With(p.Namespace)
		}
	}
	return who
}

// noJob is driver.ErrNotFound for a person, who knows of no driver.
type noJob driver.JobID

func (n noJob) Error() string { return "there is no job " + string(n) }

func (n noJob) Unwrap() error { return driver.ErrNotFound }

func decode(req request, limit int64, into any) error {
	err := json.NewDecoder(http.MaxBytesReader(nil, req.Body, limit)).Decode(into)
	if large, is := errors.AsType[*http.MaxBytesError](err); is {
		return fmt.Errorf("%w: it is larger than %d KiB", errInput, large.Limit>>10)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errInput, err)
	}
	return nil
}

func (d *Daemon) answer(w http.ResponseWriter, out any, err error) {
	code := http.StatusOK
	switch {
	case err != nil:
		code, out = problemOf(err)
	case out == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	s, ok := out.(stream)
	if !ok {
		s = stream{"application/json", func(w io.Writer) error { return json.NewEncoder(w).Encode(out) }}
	}
	w.Header().Set("Content-Type", s.kind)
	w.WriteHeader(code)
	if err := s.write(w); err != nil {
		d.log.Debug("answer not sent whole", "error", err)
	}
}

// problemOf sorts an error by what its reader can do about it.
func problemOf(err error) (status int, p api.Problem) {
	var faults jobfile.Errors
	of := func(status int, kind string) (int, api.Problem) {
		return status, api.Problem{Error: err.Error(), Kind: kind}
	}
	switch {
	case errors.Is(err, errInput), errors.Is(err, trials.ErrConflict), errors.Is(err, driver.ErrInvalid), errors.Is(err, driver.ErrUnsupported), errors.As(err, &faults):
		status, p = of(http.StatusBadRequest, "invalid")
		p.Error = strings.TrimPrefix(p.Error, errInput.Error()+": ") // its reader says it before
		return status, p
	case errors.Is(err, driver.ErrNotFound), errors.Is(err, trials.ErrNotFound):
		return of(http.StatusNotFound, "not-found")
	case errors.Is(err, errDenied), errors.Is(err, driver.ErrDenied), errors.Is(err, driver.ErrNoRoom):
		return of(http.StatusForbidden, "denied")
	case errors.Is(err, errUsersSubmit):
		return of(http.StatusConflict, "users-submit")
	case errors.Is(err, errUsersStop):
		return of(http.StatusConflict, "users-stop")
	case errors.Is(err, errDeregister):
		return of(http.StatusConflict, "users-deregister")
	case errors.Is(err, ErrStandby):
		return of(http.StatusServiceUnavailable, "standby")
	}
	return of(http.StatusServiceUnavailable, "unavailable")
}

// record is the job's record, nil where there is none yet.
func (d *Daemon) record(ctx context.Context, job driver.Job) (*reconcile.Record, error) {
	rec, err := d.records.Load(ctx, job.ID)
	if errors.Is(err, reconcile.ErrNoRecord) || err == nil && !rec.Of(job) {
		return nil, nil //nolint:nilnil // a job that was not seen yet has no record
	}
	return rec, err
}
