package server_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/certs/certstest"
	"pitchpipe/exporter/server"
)

// said is a log that tests read.
type said struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// site has an authority, and an exporter that serves over TLS.
type site struct {
	ca      *certstest.Authority
	files   certs.Files // the exporter's
	address string
	marker  *marker
	said    said
}

func node() certstest.Leaf {
	return certstest.Leaf{Name: "n1", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}
}

func controller() certstest.Leaf { return certstest.Leaf{Name: "controller", Client: true} }

func newSite(t *testing.T, of certstest.Leaf) *site {
	t.Helper()
	s := &site{ca: certstest.New(t, "site"), marker: &marker{}}
	s.files = s.ca.Files(t, of, s.ca)
	s.serve(t, server.Remote{Clients: []string{"controller", "ctl.example.org"}})
	return s
}

func (s *site) serve(t *testing.T, cfg server.Remote) {
	t.Helper()
	cfg.Address, cfg.Certs = "127.0.0.1:0", s.files
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics\n") })
	srv, err := server.New(server.Config{
		Socket: "unused", Logger: slog.New(slog.NewTextHandler(&s.said, nil)),
		Remote: cfg,
	}, static(api.Node{Hostname: "n1", Cores: 2}), fill(t), s.marker, metrics)
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = "https://" + l.Addr().String()
	serve(t, func(ctx context.Context) error { return srv.ServeRemote(ctx, l) })
}

func (s *site) client(t *testing.T, own certs.Files) *api.Client {
	t.Helper()
	store, err := certs.Open(own, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := api.NewClientAt(s.address, store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// hears waits until the log has a text: a handshake is refused concurrently with the answer.
func (s *site) hears(t *testing.T, text string) {
	t.Helper()
	until(t, "the log has "+text, func() bool { return strings.Contains(s.said.String(), text) })
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// serve runs something until the test ends.
func serve(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// freeAddress is a loopback address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // it is only to be free
	return l.Addr().String()
}
