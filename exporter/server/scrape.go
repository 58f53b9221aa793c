package server

import (
	"net/http"

	"pitchpipe/exporter/metrics"
)

// scrape shows the node to everybody, and of the jobs those that the caller may see.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) {
	p, err := peerOf(r.Context())
	switch {
	case s.cfg.ShowJobs || err == nil && p.all:
	case err != nil:
		r = r.WithContext(metrics.For(r.Context(), metrics.View{}))
	default:
		r = r.WithContext(metrics.For(r.Context(), metrics.View{Some: true, UID: p.UID}))
	}
	s.metrics.ServeHTTP(w, r)
}
