package metrics

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"pitchpipe/exporter/api"
)

// maxScrapes is how many are answered at a time; further ones get 503.
const maxScrapes = 4

type viewKey struct{}

// For is the context of a request whose caller may see such jobs only. Without it he
// sees all.
func For(ctx context.Context, visible func(api.Job) bool) context.Context {
	return context.WithValue(ctx, viewKey{}, visible)
}

// Handler serves the collector beside those of the process and the Go runtime.
func Handler(c *Collector, more ...prometheus.Collector) (http.Handler, error) {
	options := promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}
	all, err := registry(append([]prometheus.Collector{c}, more...))
	if err != nil {
		return nil, err
	}
	everything := promhttp.HandlerFor(all, options)
	room := make(chan struct{}, maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		visible, limited := r.Context().Value(viewKey{}).(func(api.Job) bool)
		if !limited {
			everything.ServeHTTP(w, r)
			return
		}
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
		default:
			http.Error(w, "too many scrapes at a time", http.StatusServiceUnavailable)
			return
		}
		part := *c
		part.visible = visible
		his, err := registry(append([]prometheus.Collector{&part}, more...))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		promhttp.HandlerFor(his, options).ServeHTTP(w, r)
	}), nil
}

func registry(collectors []prometheus.Collector) (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	for _, m := range collectors {
		if err := r.Register(m); err != nil {
			return nil, err
		}
	}
	return r, nil
}
