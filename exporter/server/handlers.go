package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/metrics"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

const maxBody = 4 << 10

type problem struct {
	status int
	err    error
}

func (p problem) Error() string { return p.err.Error() }

// register adds what callers on every side may ask.
func (s *Server) register(mux *http.ServeMux) {
	mux.HandleFunc("GET "+api.PathNode, func(w http.ResponseWriter, _ *http.Request) { s.answer(w, s.node()) })
	mux.Handle("GET "+api.PathJobs, s.handle(func(_ *http.Request, p peer) (any, error) { return s.store.Jobs(p.sees), nil }))
	mux.Handle("GET "+api.PathSamples, s.handle(s.window))
	mux.Handle("POST "+api.PathReport, s.handle(s.progressFor))
	mux.Handle("PUT "+api.PathBudget, s.handle(s.budget))
	mux.HandleFunc("GET /metrics", s.scrape)
}

// handle answers an identified caller with what h returns, or with 204 where that is nil.
func (s *Server) handle(h func(r *http.Request, p peer) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := peerOf(r.Context())
		if p.err != nil {
			s.refuse(w, problem{http.StatusForbidden, p.err})
			return
		}
		switch out, err := h(r, p); {
		case err != nil:
			s.refuse(w, err)
		case out == nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			s.answer(w, out)
		}
	})
}

// answer sends v as JSON; v may be a function that writes it.
func (s *Server) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	send, ok := v.(func(io.Writer) error)
	if !ok {
		send = func(w io.Writer) error { return json.NewEncoder(w).Encode(v) }
	}
	if err := send(w); err != nil {
		s.log.Debug("answer not sent", "err", err)
	}
}

func (s *Server) refuse(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	if p, ok := errors.AsType[problem](err); ok {
		status = p.status
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	s.answer(w, api.Problem{Error: err.Error()})
}

func number(r *http.Request, name string, bits int) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(text, 10, bits)
	if err != nil {
		return 0, problem{http.StatusBadRequest, fmt.Errorf("%s=%s: want a whole number, 0 or more", name, text)}
	}
	return v, nil
}

func body[T any](r *http.Request, parse func([]byte) (T, error)) (v T, err error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return v, problem{http.StatusRequestEntityTooLarge, err}
	}
	if v, err = parse(data); err != nil {
		return v, problem{http.StatusBadRequest, err}
	}
	return v, nil
}

// noJob is the answer for a job that does not exist, and for one of another user.
func noJob(r *http.Request) error {
	return problem{http.StatusNotFound, fmt.Errorf("no job %q that you may see", r.PathValue("id"))}
}

// maxPage is how many samples are written at a time: in the ring they take a tenth of the memory.
const maxPage = 20

func (s *Server) window(r *http.Request, p peer) (any, error) {
	attempt, err1 := number(r, "attempt", 31)
	after, err2 := number(r, "after", 64)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	win, ok := s.store.Window(r.PathValue("id"), int(attempt), after, maxPage, p.sees)
	if !ok {
		return nil, noJob(r)
	}
	// Whole answers to callers who do not read them would fill the memory.
	return func(w io.Writer) error {
		text, err := json.Marshal(win)
		for err == nil && len(win.Samples) > 0 {
			name, last := win.Job.Manager+"/"+win.Job.ID, win.Samples[len(win.Samples)-1].Seq
			if win, _ = s.store.Window(name, win.Job.Attempt, last, maxPage, p.sees); len(win.Samples) > 0 {
				_, err = w.Write(append(bytes.TrimSuffix(text, []byte("]}")), ','))
				more, failed := json.Marshal(win.Samples)
				text, err = append(bytes.TrimPrefix(more, []byte("[")), '}'), cmp.Or(err, failed)
			}
		}
		if err == nil {
			_, err = w.Write(append(text, '\n'))
		}
		return err
	}, nil
}

// budget takes what a job may use from a caller who sees the job. A caller who sees all jobs
// sets the controller's budget, the job's user the owner's, and neither can raise what the
// other set: see api.Budgets.
func (s *Server) budget(r *http.Request, p peer) (any, error) {
	attempt, err1 := number(r, "attempt", 31)
	b, err2 := body(r, api.ParseBudget)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, err
	}
	job, ok := s.store.Find(r.PathValue("id"), int(attempt), p.sees)
	if !ok {
		return nil, noJob(r)
	}
	if job.Ended {
		return nil, problem{http.StatusNotFound, errors.New("the job has ended")}
	}
	by := api.ByOwner
	if p.all {
		by = api.ByController
	}
	s.store.Allow(window.Key(job), by, b)
	return nil, nil //nolint:nilnil // there is nothing to answer
}

// progress takes a report from inside a job: where its sender runs names the job.
func (s *Server) progress(r *http.Request, p peer) (any, error) {
	if s.cfg.Blind != "" || p.PID <= 0 {
		return nil, problem{http.StatusForbidden, fmt.Errorf("the caller's process is not known: %s", cmp.Or(s.cfg.Blind, "it is in a process namespace that the exporter does not see"))}
	}
	return nil, s.mark(r, http.StatusForbidden, func(ctx context.Context, report api.Report) error {
		return s.marker.Mark(ctx, p.Caller, report)
	})
}

// progressFor takes a report about a job from a caller who may see the jobs of all users.
func (s *Server) progressFor(r *http.Request, p peer) (any, error) {
	if !p.all {
		return nil, problem{http.StatusForbidden, errors.New("on behalf of a job only root and the exporter's readers report; a job itself reports at " + api.PathProgress)}
	}
	attempt, err := number(r, "attempt", 31)
	if err != nil {
		return nil, err
	}
	return nil, s.mark(r, http.StatusNotFound, func(ctx context.Context, report api.Report) error {
		return s.marker.MarkFor(ctx, r.PathValue("id"), int(attempt), report)
	})
}

// mark reads a report and passes it on; nowhere is the status where it belongs to no job.
func (s *Server) mark(r *http.Request, nowhere int, pass func(context.Context, api.Report) error) error {
	report, err := body(r, api.ParseReport)
	if err != nil {
		return err
	}
	// What was sent counts, though its sender may be gone by now: a job's end takes the
	// listener with it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
	defer cancel()
	if err = pass(ctx, report); errors.Is(err, sampler.ErrNoJob) {
		return problem{nowhere, err}
	}
	return err
}

// scrape shows the node to every caller, and of the jobs those that the caller may see.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) {
	p := peerOf(r.Context())
	if !s.cfg.ShowJobs && !p.all {
		r = r.WithContext(metrics.For(r.Context(), p.UID))
	}
	s.metrics.ServeHTTP(w, r)
}
