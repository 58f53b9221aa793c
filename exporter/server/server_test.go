package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/server"
	"pitchpipe/exporter/window"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// marker records what the server passes on.
type marker struct {
	mu   sync.Mutex
	who  peercred.Caller
	got  []api.Report
	on   []string // whose behalf the last ones were on
	fail error
}

func (m *marker) MarkFor(_ context.Context, name string, attempt int, r api.Report) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.on = append(m.on, fmt.Sprintf("%s %d", name, attempt))
	m.got = append(m.got, r)
	return m.fail
}

func (m *marker) Mark(_ context.Context, who peercred.Caller, r api.Report) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.who = who
	m.got = append(m.got, r)
	return m.fail
}

func static(n api.Node) func() api.Node { return func() api.Node { return n } }

func start(t *testing.T, store *window.Store, m *marker) *api.Client {
	t.Helper()
	return startWith(t, store, m, server.Config{})
}

func startWith(t *testing.T, store *window.Store, m *marker, cfg server.Config) *api.Client {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "run", "s")
	cfg.Socket, cfg.Logger = socket, slog.New(slog.DiscardHandler)
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics\n") })
	node := api.Node{Hostname: "n1", Cores: 2}
	s, err := server.New(cfg, static(node), store, m, metrics)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	client := api.NewClient(socket)
	t.Cleanup(func() {
		client.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	deadline := time.Now().Add(time.Minute)
	for {
		_, err := client.Node(t.Context())
		if err == nil {
			return client
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func fill(t *testing.T) *window.Store {
	t.Helper()
	store := window.New(window.Config{})
	for id, uid := range map[string]uint32{"mine": uint32(os.Getuid()), "theirs": uint32(os.Getuid()) + 1} {
		key := attrib.Key{Manager: attrib.Local, ID: id, Attempt: 1}
		if err := store.Begin(window.Attempt{Job: api.Job{Manager: attrib.Local, ID: id, Attempt: 1, UID: uid}, Schema: api.SchemaAccounting, Source: "modelled"}); err != nil {
			t.Fatal(err)
		}
		store.Append(key, time.Unix(1, 0), map[string]float64{api.ColCPUSeconds: 2}, nil)
	}
	return store
}

func TestUsersSeeTheirOwnJobsAndRootAll(t *testing.T) {
	t.Parallel()
	c := start(t, fill(t), &marker{})
	jobs, err := c.Jobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"mine"}
	if os.Getuid() == 0 {
		want = []string{"mine", "theirs"}
	}
	var got []string
	for _, j := range jobs {
		got = append(got, j.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	w, err := c.Window(t.Context(), "mine", 1, 0)
	if err != nil || len(w.Samples) != 1 || w.Samples[0].Values[api.ColCPUSeconds] != 2 {
		t.Errorf("window %+v, %v", w, err)
	}
	if w, err := c.Window(t.Context(), "local/mine", 1, 0); err != nil || w.Job.ID != "mine" {
		t.Errorf("window by manager %+v, %v", w.Job, err)
	}
	if _, err := c.Window(t.Context(), "slurm/mine", 1, 0); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("another manager's job: got %v, want %v", err, api.ErrNotFound)
	}
	if _, err := c.Window(t.Context(), "no one's", 0, 0); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("unknown job: got %v, want %v", err, api.ErrNotFound)
	}
	if os.Getuid() != 0 {
		if _, err := c.Window(t.Context(), "theirs", 0, 0); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("another's job: got %v, want %v", err, api.ErrNotFound)
		}
	}
}

func TestProgressCarriesTheKernelsWordOnTheSender(t *testing.T) {
	t.Parallel()
	m := &marker{}
	c := start(t, window.New(window.Config{}), m)
	loss := 0.5
	want := api.Report{Epoch: 2, Total: 9, Loss: &loss, Time: time.Unix(9, 0).UTC()}
	if err := c.Report(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if m.who.PID != os.Getpid() || m.who.UID != uint32(os.Getuid()) || m.who.Start != peercred.Started(os.Getpid()) {
		t.Errorf("%+v, want pid %d of user %d", m.who, os.Getpid(), os.Getuid())
	}
	if diff := cmp.Diff([]api.Report{want}, m.got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	if err := c.Report(t.Context(), api.Report{Epoch: 0}); !errors.Is(err, api.ErrInvalid) {
		t.Errorf("epoch 0: got %v, want %v", err, api.ErrInvalid)
	}
	for fail, want := range map[error]error{sampler.ErrNoJob: api.ErrDenied, context.DeadlineExceeded: api.ErrUnavailable} {
		m.mu.Lock()
		m.fail = fail
		m.mu.Unlock()
		if err := c.Report(t.Context(), api.Report{Epoch: 1}); !errors.Is(err, want) {
			t.Errorf("%v: got %v, want %v", fail, err, want)
		}
	}
}

func TestReportsAreRefusedWhereProcessNumbersMeanNothing(t *testing.T) {
	t.Parallel()
	m := &marker{}
	c := startWith(t, window.New(window.Config{}), m, server.Config{Blind: "a namespace of its own"})
	if err := c.Report(t.Context(), api.Report{Epoch: 1}); !errors.Is(err, api.ErrDenied) || !strings.Contains(err.Error(), "a namespace of its own") {
		t.Errorf("got %v, want it denied with the reason", err)
	}
	if len(m.got) != 0 {
		t.Errorf("passed on %+v", m.got)
	}
}

func TestRequestsWithoutCredentialsAreRefused(t *testing.T) {
	t.Parallel()
	s, err := server.New(server.Config{Socket: "unused"}, static(api.Node{}), fill(t), &marker{}, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range [][2]string{{"GET", api.PathJobs}, {"GET", "/v1/jobs/mine/window"}, {"POST", api.PathProgress}, {"POST", "/v1/jobs/mine/progress"}} {
		req, err := http.NewRequestWithContext(t.Context(), r[0], r[1], strings.NewReader(`{"epoch":1}`))
		if err != nil {
			t.Fatal(err)
		}
		rec := &recorder{header: http.Header{}}
		s.Handler().ServeHTTP(rec, req)
		if rec.status != http.StatusForbidden {
			t.Errorf("%s %s: status %d, want %d", r[0], r[1], rec.status, http.StatusForbidden)
		}
	}
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }

func TestMetricsAreForLoopbackOnly(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{
		"": true, "127.0.0.1:0": true, "[::1]:9820": true, "localhost:9820": true,
		":9820": false, "0.0.0.0:9820": false, "10.0.0.1:9820": false, "example.org:9820": false, "127.0.0.1": false,
	} {
		_, err := server.New(server.Config{Socket: "s", Metrics: address}, static(api.Node{}), nil, nil, nil)
		if ok != (err == nil) || err != nil && !errors.Is(err, server.ErrAddress) {
			t.Errorf("%q: %v, want it accepted: %v", address, err, ok)
		}
	}
}

func TestASocketInUseIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	run := func(path string) (cancel func(), done chan error) {
		s, err := server.New(server.Config{Socket: path}, static(api.Node{}), window.New(window.Config{}), &marker{}, http.NotFoundHandler())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done = make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		return stop, done
	}
	stop, done := run(socket)
	c := api.NewClient(socket)
	defer c.Close()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if _, err := c.Node(t.Context()); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	stop2, done2 := run(socket)
	if err := <-done2; err == nil {
		t.Error("a second server took the socket over")
	}
	stop2()
	c.Close()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	stop3, done3 := run(file)
	defer stop3()
	if err := <-done3; err == nil {
		t.Error("a file was taken for a socket")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
		t.Errorf("the file is %q, %v", text, err)
	}
}
