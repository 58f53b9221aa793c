package rest_test

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/rest"
)

// serve answers on a socket as a slurmrestd would that serves one version.
func serve(t *testing.T, h http.HandlerFunc) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket) //nolint:noctx // it is closed with the server
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return socket
}

const counted = `{"statistics":{"req_time_start":1795249791,"jobs_submitted":10,"jobs_started":7,"jobs_completed":5,"jobs_canceled":2,"jobs_failed":1}}`

func TestTheVersionThatIsServedIsFoundOnceAndAgainAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	var serves atomic.Value
	var asked atomic.Int64
	serves.Store("v0.0.38")
	socket := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/slurm/"+serves.Load().(string)+"/diag/" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(counted))
	})
	c := rest.New(socket)
	defer c.Close()
	want := parse.Activity{Since: 1795249791, Submitted: 10, Started: 7, Completed: 5, Canceled: 2, Failed: 1}
	look := func(atMost int64) {
		t.Helper()
		before := asked.Load()
		got, err := c.Activity(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if n := asked.Load() - before; n > atMost {
			t.Errorf("%d requests, want at most %d", n, atMost)
		}
	}
	look(8)
	look(1)
	serves.Store("v0.0.40")
	if _, err := c.Activity(t.Context()); err == nil {
		t.Error("an answer of a version that is served no longer")
	}
	look(8)
}

func TestWhatIsNoAnswerIsAnError(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.HandlerFunc{
		"it serves nothing":     http.NotFound,
		"it refuses":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"slurmctld is away":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"it answers no JSON":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"it answers without it": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"statistics":{}}`)) },
		"it answers a part": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Replace(counted, `"jobs_failed":1`, `"jobs_failed":"many"`, 1)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := rest.New(serve(t, h))
			defer c.Close()
			if got, err := c.Activity(t.Context()); err == nil || got != (parse.Activity{}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestASocketThatIsNotThereOrAnothersIsNotAsked(t *testing.T) {
	t.Parallel()
	c := rest.New(filepath.Join(t.TempDir(), "none"))
	defer c.Close()
	if _, err := c.Activity(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestTheSocketOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a socket away")
	}
	socket := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(counted)) })
	if err := os.Chown(socket, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	c := rest.New(socket)
	defer c.Close()
	if got, err := c.Activity(t.Context()); !errors.Is(err, rest.ErrForeign) {
		t.Errorf("%+v, %v, want %v", got, err, rest.ErrForeign)
	}
}
