package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"pitchpipe/exporter/api"
)

// maxBudget bounds the body of a budget.
const maxBudget = 4 << 10

var errEnded = errors.New("the job has ended")

// budget takes what a job may use from whoever sees the job. Who sees all speaks as the
// controller, its user as its owner, and neither can raise what the other said: see
// package budget.
func (s *Server) budget(w http.ResponseWriter, r *http.Request) {
	p, err := peerOf(r.Context())
	if err != nil {
		s.refuse(w, http.StatusForbidden, err)
		return
	}
	attempt, err := count(r.URL.Query().Get("attempt"), 31)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBudget))
	if err != nil {
		s.refuse(w, http.StatusRequestEntityTooLarge, err)
		return
	}
	b, err := api.ParseBudget(body)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err)
		return
	}
	// A job of another user and one that does not exist look the same.
	key, job, ok := s.store.Find(r.PathValue("id"), int(attempt), p.sees)
	if !ok {
		s.refuse(w, http.StatusNotFound, fmt.Errorf("no job %q that you may see", r.PathValue("id")))
		return
	}
	if job.Ended {
		s.refuse(w, http.StatusNotFound, errEnded)
		return
	}
	by := api.ByOwner
	if p.all {
		by = api.ByController
	}
	s.store.Allow(key, by, b)
	w.WriteHeader(http.StatusNoContent)
}
