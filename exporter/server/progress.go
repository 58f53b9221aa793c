package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/sampler"
)

const maxReport = 4 << 10

// progress takes a report from inside a job: where its sender runs names the job.
func (s *Server) progress(w http.ResponseWriter, r *http.Request) {
	p, err := peerOf(r.Context())
	if err != nil {
		s.refuse(w, http.StatusForbidden, err)
		return
	}
	if s.cfg.Blind != "" || p.PID <= 0 {
		s.refuse(w, http.StatusForbidden, fmt.Errorf("the caller's process is not known: %s", cmp.Or(s.cfg.Blind, "it is in a process namespace that the exporter does not see")))
		return
	}
	s.mark(w, r, http.StatusForbidden, func(ctx context.Context, report api.Report) error {
		return s.marker.Mark(ctx, p.Caller, report)
	})
}

// progressFor takes a report about a job from who may see the jobs of everybody.
func (s *Server) progressFor(w http.ResponseWriter, r *http.Request) {
	p, err := peerOf(r.Context())
	if err == nil && !p.all {
		err = errors.New("on behalf of a job only root and the exporter's readers report; a job itself reports at " + api.PathProgress)
	}
	if err != nil {
		s.refuse(w, http.StatusForbidden, err)
		return
	}
	attempt, err := count(r.URL.Query().Get("attempt"), 31)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err)
		return
	}
	manager, id := "", r.PathValue("id")
	if before, after, ok := strings.Cut(id, "/"); ok { // no id has a slash
		manager, id = before, after
	}
	s.mark(w, r, http.StatusNotFound, func(ctx context.Context, report api.Report) error {
		return s.marker.MarkFor(ctx, manager, id, int(attempt), report)
	})
}

// mark reads a report and passes it on; nowhere is the status where it belongs to no
// job.
func (s *Server) mark(w http.ResponseWriter, r *http.Request, nowhere int, pass func(context.Context, api.Report) error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReport))
	if err != nil {
		s.refuse(w, http.StatusRequestEntityTooLarge, err)
		return
	}
	report, err := api.ParseReport(body)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err)
		return
	}
	// What was sent counts, though its sender may be gone by now: a job's end takes the
	// listener with it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 5*time.Second)
	defer cancel()
	switch err := pass(ctx, report); {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, sampler.ErrNoJob):
		s.refuse(w, nowhere, err)
	default:
		s.refuse(w, http.StatusServiceUnavailable, err)
	}
}
