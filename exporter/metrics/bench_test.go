package metrics_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/metrics"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// BenchmarkPage is the first scrape after a sample, with every column of 400 jobs known.
func BenchmarkPage(b *testing.B) {
	const jobs = 400
	store := window.New(window.Config{})
	joules := map[attrib.Key]energy.Joules{}
	now := time.Unix(1_700_000_000, 0)
	for n := range jobs {
		key := attrib.Key{Manager: "slurm", ID: fmt.Sprint(n), Attempt: 1}
		if err := store.Begin(key, api.Job{Manager: key.Manager, ID: key.ID, Attempt: 1, UID: 1000, Started: now}, api.SchemaSoftware, "rapl", nil); err != nil {
			b.Fatal(err)
		}
		values := map[string]float64{}
		for i, c := range columns() {
			values[c] = float64(n*i) / 3
		}
		store.Append(key, now, values, nil)
		joules[key] = energy.Joules{Active: float64(n) / 7, Idle: float64(n) / 9}
	}
	snap := &sampler.Snapshot{JobJoules: joules}
	h, err := metrics.Handler(metrics.Config{
		Node: func() api.Node { return api.Node{} }, Store: store, Snapshot: func() *sampler.Snapshot { return snap },
		Others: []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})},
	})
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	b.ReportAllocs()
	for b.Loop() {
		again := *snap
		snap = &again // as after a sample
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Body.Len() == 0 {
			b.Fatal("no page")
		}
	}
}
