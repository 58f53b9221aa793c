package api_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/report"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve answers on a Unix socket as h does, and returns a client for it.
func serve(t *testing.T, h http.HandlerFunc) *api.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	client := api.NewClient(socket)
	t.Cleanup(func() {
		client.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return client
}

func TestAnswersThatAreErrorsHaveTheirKind(t *testing.T) {
	t.Parallel()
	kinds := []error{api.ErrInvalid, api.ErrNotFound, api.ErrDenied, api.ErrUnavailable}
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   error
		says   string
	}{
		{"a job file with errors", 400, `{"error":"job.sh:3:5: no","kind":"invalid"}`, api.ErrInvalid, "job.sh:3:5: no"},
		{"no such job", 404, `{"error":"job not found","kind":"not-found"}`, api.ErrNotFound, "job not found"},
		{"another's job", 403, `{"error":"not yours","kind":"denied"}`, api.ErrDenied, "not yours"},
		{"a scheduler in trouble", 503, `{"error":"later","kind":"unavailable"}`, api.ErrUnavailable, "later"},
		{"the kind counts more than the status", 503, `{"error":"x","kind":"denied"}`, api.ErrDenied, "x"},
		{"a kind of another version", 500, `{"error":"x","kind":"surprise"}`, api.ErrUnavailable, "x"},
		{"a page that is no controller's", 404, "404 page not found", api.ErrNotFound, "404 Not Found"},
		{"a refusal without a kind", 403, `{}`, api.ErrDenied, "403 Forbidden"},
		{"a bad request without a kind", 400, "", api.ErrInvalid, "400 Bad Request"},
		{"an error without a body", 500, "", api.ErrUnavailable, "500"},
		{"a redirect is not followed", 301, "", api.ErrNotFound, "301"},
		{"an id such as ../jobs", 307, "", api.ErrNotFound, "there is no such job or search"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			_, err := client.Job(t.Context(), "x")
			for _, kind := range kinds {
				if errors.Is(err, kind) != errors.Is(kind, c.want) {
					t.Errorf("error %v: is %v %v, want %v", err, kind, errors.Is(err, kind), c.want)
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v does not say %q", err, c.says)
			}
			if _, err := client.Logs(t.Context(), "x", 0, &bytes.Buffer{}); !errors.Is(err, c.want) {
				t.Errorf("logs: %v, want %v", err, c.want)
			}
		})
	}
}

func TestAControllerThatIsNotThere(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "absent")
	client := api.NewClient(socket)
	defer client.Close()
	_, err := client.Jobs(t.Context())
	if !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), socket) || !strings.Contains(err.Error(), "pitchpipe controller") {
		t.Errorf("%v: want %v, the socket, and what to start", err, api.ErrUnavailable)
	}
}

func TestACallThatWasCancelledIsNotTheControllersFault(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	client := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := client.Jobs(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, api.ErrUnavailable) {
		t.Errorf("%v, want the caller's own time-out", err)
	}
}

func TestAnAnswerThatIsNotJSONIsAnError(t *testing.T) {
	t.Parallel()
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) })
	if _, err := client.Knowledge(t.Context()); err == nil {
		t.Error("a page was taken for knowledge")
	}
}

func TestEachCallAsksItsOwnPath(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_, _ = b.ReadFrom(r.Body)
		asked <- fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), &b)
		_, _ = w.Write([]byte("null"))
	})
	ctx := t.Context()
	for _, c := range []struct {
		want string
		call func() error
	}{
		{"GET /v1/jobs ", func() error { _, err := client.Jobs(ctx); return err }},
		{"GET /v1/jobs/a%2Fb%3Fc ", func() error { _, err := client.Job(ctx, "a/b?c"); return err }},
		{"GET /v1/explain/7 ", func() error { _, err := client.Explain(ctx, "7"); return err }},
		{"GET /v1/explain/7?replay=true ", func() error { _, err := client.Replay(ctx, "7"); return err }},
		{"GET /v1/logs/7?offset=12 ", func() error { _, err := client.Logs(ctx, "7", 12, &bytes.Buffer{}); return err }},
		{"GET /v1/history ", func() error { _, err := client.History(ctx); return err }},
		{"GET /v1/knowledge ", func() error { _, err := client.Knowledge(ctx); return err }},
		{"GET /v1/observations ", func() error { return client.Observations(ctx, &bytes.Buffer{}) }},
		{"GET /v1/report?by=user&since=7d ", func() error { _, err := client.Report(ctx, "7d", report.ByUser); return err }},
		{
			`POST /v1/validate {"filename":"f","source":"eA=="}`,
			func() error {
				_, err := client.Validate(ctx, api.Draft{Filename: "f", Source: []byte("x")})
				return err
			},
		},
		{"GET /v1/pauses ", func() error { _, err := client.Pauses(ctx); return err }},
		{"POST /v1/off/7 ", func() error { return client.Off(ctx, "7") }},
		{"POST /v1/stop/7 ", func() error { return client.Stop(ctx, "7") }},
		{`POST /v1/pauses {"scope":"job","name":"7"}`, func() error { return client.Pause(ctx, api.Pause{Scope: "job", Name: "7"}) }},
		{"DELETE /v1/pauses?name=a+b&scope=user ", func() error { return client.Resume(ctx, "user", "a b") }},
		{
			`POST /v1/jobs {"request":"r","filename":"f","source":"eA==","dir":"/"}`,
			func() error {
				_, err := client.Submit(ctx, api.Submission{Request: "r", Filename: "f", Source: []byte("x"), Dir: "/"})
				return err
			},
		},
	} {
		if err := c.call(); err != nil {
			t.Errorf("%s: %v", c.want, err)
		}
		if got := <-asked; got != c.want {
			t.Errorf("asked %q, want %q", got, c.want)
		}
	}
}
