package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/daemon/story"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
)

// recallWait is how long a tunable job waits for the tuner before it starts.
const recallWait = time.Second

// maxRequest bounds a request; a submission holds the job file and the environment.
const maxRequest = 1 << 20

var (
	errDenied = errors.New("only the job's owner or root may do this")
	errInput  = errors.New("invalid request")

	errUsersSubmit = errors.New("the job file is valid, and its user submits it")
	errUsersStop   = errors.New("this controller has no right to stop the job, and its user has")
)

// handler serves the API of one daemon.
type handler struct{ d *Daemon }

func (d *Daemon) handler(metrics http.Handler) http.Handler {
	h := handler{d}
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*http.Request) (any, error){
		"GET " + api.PathJobs:        h.jobs,
		"POST " + api.PathJobs:       h.submit,
		"POST " + api.PathValidate:   h.validate,
		"POST " + api.PathHeadStarts: h.headStart,
		"GET " + api.PathJob:         h.job,
		"GET " + api.PathExplain:     h.explain,
		"POST " + api.PathOff:        h.off,
		"POST " + api.PathStop:       h.stop,
		"GET " + api.PathHistory:     h.history,
		"GET " + api.PathKnowledge:   h.knowledge,
		"GET " + api.PathReport:      h.report,
		"GET " + api.PathPauses:      h.pauses,
		"POST " + api.PathPauses:     h.pause,
		"DELETE " + api.PathPauses:   h.resume,
	} {
		changes := !strings.HasPrefix(pattern, "GET ") && !strings.HasSuffix(pattern, api.PathValidate)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			if changes {
				if err := h.d.candidate.mayChange(req.Context()); err != nil {
					h.answer(w, nil, err)
					return
				}
			}
			h.d.candidate.refresh(req.Context(), h.d)
			out, err := serve(req)
			h.answer(w, out, err)
		})
	}
	mux.HandleFunc("GET "+api.PathLogs, h.logs)
	mux.HandleFunc("GET "+api.PathObservations, h.observe)
	mux.Handle("GET "+api.PathMetrics, metrics)
	return mux
}

func (h handler) answer(w http.ResponseWriter, out any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		code, kind := classifyError(err)
		w.WriteHeader(code)
		out = api.Problem{Error: err.Error(), Kind: kind}
	} else if out == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		h.d.log.Debug("answer not sent", "error", err)
	}
}

func classifyError(err error) (code int, kind string) {
	var faults jobfile.Errors
	switch {
	case errors.Is(err, errInput), errors.Is(err, driver.ErrInvalid), errors.As(err, &faults),
		errors.Is(err, driver.ErrUnsupported):
		return http.StatusBadRequest, "invalid"
	case errors.Is(err, driver.ErrNotFound):
		return http.StatusNotFound, "not-found"
	case errors.Is(err, errDenied), errors.Is(err, driver.ErrDenied):
		return http.StatusForbidden, "denied"
	case errors.Is(err, errUsersSubmit):
		return http.StatusConflict, "users-submit"
	case errors.Is(err, errUsersStop):
		return http.StatusConflict, "users-stop"
	case errors.Is(err, ErrStandby):
		return http.StatusServiceUnavailable, "standby"
	}
	return http.StatusServiceUnavailable, "unavailable"
}

// caller is the user that the kernel names, or errDenied. The configuration says which
// namespaces of Nomad belong to him as well: anyone can write an owner into a job file.
func (h handler) caller(req *http.Request) (peer.Peer, error) {
	who, err := peer.From(req.Context())
	if err != nil {
		return who, fmt.Errorf("%w: %w", errDenied, err)
	}
	return known(h.d.cfg, who), nil
}

// known adds the namespaces of Nomad that the configuration gives to a caller.
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

// submit checks the whole job file before anything exists.
func (h handler) submit(req *http.Request) (any, error) {
	var s api.Submission
	if err := json.NewDecoder(io.LimitReader(req.Body, maxRequest)).Decode(&s); err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	who, err := h.caller(req)
	if err != nil {
		return nil, err
	}
	file, err := h.d.parse(s.Filename, s.Source, s.Variables)
	if err != nil {
		return nil, err
	}
	policy, err := stanza.Policy(file)
	tuned := err == nil
	if err != nil && !errors.Is(err, stanza.ErrNone) {
		return nil, err
	}
	if h.d.driver.Capabilities().UsersSubmit {
		return nil, errUsersSubmit
	}
	spec := driver.Spec{
		Owner: who.Name, Filename: s.Filename, Source: s.Source, Variables: s.Variables, Dir: s.Dir, Env: s.Env,
	}
	if tuned {
		spec.Progress = progress(policy.Progress)
		if h.d.mayApply(policy, who.Name) && !s.Off {
			spec.NotBefore = time.Now().Add(recallWait)
		}
	}
	if s.Request == "" {
		s.Request = newRequestID()
	}
	// The caller's name keeps the requests of two users apart: none gets or switches off
	// the other's job.
	request := driver.RequestID(who.Name + "/" + s.Request)
	undo := func() error { return nil }
	if s.Off && !h.d.pauses.isOff(requestKey(request)) {
		// Written before the job exists, so that the loop cannot see the job first.
		if err := h.d.pauses.switchOff(requestKey(request), who.Name); err != nil {
			return nil, err
		}
		undo = func() error { return h.d.pauses.switchOn(requestKey(request)) }
	}
	job, err := h.d.driver.Start(req.Context(), request, spec)
	if refusedForGood(err) {
		return nil, errors.Join(err, undo())
	}
	if err != nil {
		return nil, err
	}
	h.d.queue.Add(job.ID)
	return status(job, nil, time.Now()), nil
}

// refusedForGood reports whether a submission certainly made no job. After any other error
// a job may exist, or the same request may be repeated.
func refusedForGood(err error) bool {
	return errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrUnsupported) || errors.Is(err, driver.ErrDenied)
}

func (h handler) jobs(req *http.Request) (any, error) {
	who, err := h.caller(req)
	if err != nil {
		return nil, err
	}
	jobs, err := h.d.driver.List(req.Context())
	if err != nil {
		return nil, err
	}
	out := []api.Job{}
	for _, j := range jobs {
		if !who.May(j.Owner) {
			continue
		}
		rec, err := h.record(req.Context(), j)
		if err != nil {
			return nil, err
		}
		out = append(out, status(j, rec, time.Now()))
	}
	return out, nil
}

// mayApply reports whether the tuner may change such a job, so that its start should wait.
func (d *Daemon) mayApply(p tuning.Policy, owner string) bool {
	site := d.services.site.For("", "", "", owner)
	return p.Mode.AtMost(site.MaxMode) == tuning.Apply && !site.DryRun
}

// record is the job's record, nil where there is none yet.
func (h handler) record(ctx context.Context, job driver.Job) (*reconcile.Record, error) {
	rec, err := h.d.records.Load(ctx, job.ID)
	if errors.Is(err, reconcile.ErrNoRecord) || err == nil && !rec.Of(job) {
		return nil, nil //nolint:nilnil // a job that was not seen yet has no record
	}
	return rec, err
}

// owned returns the job that the path names, if the caller may see it.
func (h handler) owned(req *http.Request) (driver.Job, peer.Peer, error) {
	who, err := h.caller(req)
	if err != nil {
		return driver.Job{}, who, err
	}
	id := driver.JobID(req.PathValue("id"))
	job, err := h.d.driver.Get(req.Context(), id)
	if errors.Is(err, driver.ErrNotFound) {
		err = noJob(id)
	}
	if err != nil {
		return driver.Job{}, who, err
	}
	if !who.May(job.Owner) {
		return driver.Job{}, who, errDenied
	}
	return job, who, nil
}

// noJob is driver.ErrNotFound for a person, who knows of no driver.
type noJob driver.JobID

func (n noJob) Error() string { return "there is no job " + string(n) }

func (n noJob) Unwrap() error { return driver.ErrNotFound }

func (h handler) job(req *http.Request) (any, error) {
	job, _, err := h.owned(req)
	if err != nil {
		return nil, err
	}
	rec, err := h.record(req.Context(), job)
	if err != nil {
		return nil, err
	}
	if rec == nil { // not seen yet: look now
		h.d.queue.Add(job.ID)
	}
	return status(job, rec, time.Now()), nil
}

func (h handler) explain(req *http.Request) (any, error) {
	job, _, err := h.owned(req)
	if err != nil {
		return nil, err
	}
	rec, err := h.record(req.Context(), job)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return api.Story{
			Job: string(job.ID), Verdict: string(job.State) + ", not looked at yet", Effect: "none: it runs as its owner asked",
			Next: "wait: the controller reads it within seconds", Lines: []api.Line{},
		}, nil
	}
	out := story.Tell(rec)
	out.Spent = story.Spent(seen(rowOf(rec), job, time.Now()))
	if req.URL.Query().Get("replay") != "" {
		story.AddReplays(&out, rec, plan.Decide)
	}
	return out, nil
}

func (h handler) logs(w http.ResponseWriter, req *http.Request) {
	job, _, err := h.owned(req)
	if err != nil {
		h.answer(w, nil, err)
		return
	}
	offset, err := strconv.ParseInt(orZero(req.URL.Query().Get("offset")), 10, 64)
	if err != nil || offset < 0 {
		h.answer(w, nil, fmt.Errorf("%w: offset wants a number of bytes", errInput))
		return
	}
	out, err := h.d.driver.Logs(req.Context(), job.ID, offset)
	if err != nil {
		h.answer(w, nil, err)
		return
	}
	defer out.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if _, err := io.Copy(w, out); err != nil {
		h.d.log.Debug("log not sent whole", "job", job.ID, "error", err)
	}
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}

func (h handler) history(req *http.Request) (any, error) {
	who, err := h.caller(req)
	if err != nil {
		return nil, err
	}
	return h.d.records.events(who.May), nil
}

// validate checks a job file as the command does. Errors of the file are the answer, not
// an error of the request.
func (h handler) validate(req *http.Request) (any, error) {
	var d api.Draft
	if err := json.NewDecoder(io.LimitReader(req.Body, 16<<20)).Decode(&d); err != nil {
		return nil, fmt.Errorf("%w: %w", errInput, err)
	}
	who, err := h.caller(req)
	if err != nil {
		return nil, err
	}
	v, _ := verdict.Of(h.d.parse, d.Filename, d.Source, d.Variables, verdict.Ground{ // the error is in it
		Driver: h.d.driver.Name(), Can: h.d.driver.Capabilities(), Given: h.d.cfg.Given, Site: h.d.services.site,
		Policy: verdict.PolicyOf(h.d.cfg.Site), User: who.Name,
	})
	return v, nil
}
