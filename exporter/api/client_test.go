package api_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"pitchpipe/exporter/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.Handler) *api.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	c := api.NewClient(socket)
	t.Cleanup(func() { c.Close(); _ = srv.Close(); <-done })
	return c
}

func TestClientAsksForTheWindowItWasToldTo(t *testing.T) {
	t.Parallel()
	mark := &api.Report{Epoch: 3, Time: time.Unix(5, 0).UTC()}
	want := api.Window{
		Job: api.Job{Manager: "local", ID: "a b/7", Attempt: 2},
		Samples: []api.Sample{{
			Seq: 9, Time: time.Unix(5, 0).UTC(),
			Values: map[string]float64{api.ColCPUSeconds: 1.5}, Mark: mark,
		}},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/jobs/{id}/window", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") != "a b/7" || r.URL.Query().Get("attempt") != "2" || r.URL.Query().Get("after") != "8" {
			http.Error(w, r.URL.String(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(want)
	})
	c := serve(t, mux)
	got, err := c.Window(t.Context(), "a b/7", 2, 8)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("window (-want +got):\n%s", diff)
	}
}

func TestClientSaysWhatTheCallerCanDo(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		status int
		want   error
	}{
		{"an unknown job is not found", http.StatusNotFound, api.ErrNotFound},
		{"a stranger is denied", http.StatusForbidden, api.ErrDenied},
		{"a bad request is invalid", http.StatusBadRequest, api.ErrInvalid},
		{"who asks too often may ask later", http.StatusTooManyRequests, api.ErrBusy},
		{"trouble inside is unavailable", http.StatusInternalServerError, api.ErrUnavailable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_ = json.NewEncoder(w).Encode(api.Problem{Error: "because"})
			}))
			_, err := c.Jobs(t.Context())
			if !errors.Is(err, tc.want) {
				t.Errorf("Jobs: got %v, want %v", err, tc.want)
			}
			if err := c.Report(t.Context(), api.Report{Epoch: 1}); !errors.Is(err, tc.want) {
				t.Errorf("Report: got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestClientWithoutAnExporterIsUnavailable(t *testing.T) {
	t.Parallel()
	c := api.NewClient(filepath.Join(t.TempDir(), "nothing"))
	if _, err := c.Node(t.Context()); !errors.Is(err, api.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, api.ErrUnavailable)
	}
}
