package server_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/server"
)

// A caller who asks for megabytes and reads none of them does not hold up the samples or
// other readers.
func TestASlowClientHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	store := fill(t)
	key := attrib.Key{Manager: attrib.Local, ID: "mine", Attempt: 1}
	for i := range 20_000 { // more than a socket's buffers take
		store.Append(key, time.Unix(int64(i), 0), map[string]float64{api.ColCPUSeconds: float64(i), api.ColRSS: 1e9}, nil)
	}
	page := bytes.Repeat([]byte("pitchpipe_x 1\n"), 1<<20)
	socket := filepath.Join(t.TempDir(), "s")
	s, err := server.New(server.Config{Socket: socket}, static(api.Node{}), store, &marker{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(page) // a caller that left gets nothing
	}))
	if err != nil {
		t.Fatal(err)
	}
	serve(t, s.Run)
	client := api.NewClient(socket)
	defer client.Close()
	until(t, "it listens", func() bool { _, err := client.Node(t.Context()); return err == nil })
	// 1. The slow ones: they wait for the first byte, so that the answer has begun, and read no more.
	for _, path := range []string{"/metrics", "/metrics", "/v1/jobs/mine/window"} {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	// 2. The others, and the sampler, which writes.
	for range 5 {
		store.Append(key, time.Unix(30_000, 0), map[string]float64{api.ColCPUSeconds: 30_000}, nil)
		if _, err := client.Window(t.Context(), "mine", 0, 20_000); err != nil {
			t.Error(err)
		}
		if _, err := client.Jobs(t.Context()); err != nil {
			t.Error(err)
		}
		h := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := h.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		h.CloseIdleConnections()
		if err != nil || !bytes.Equal(body, page) {
			t.Errorf("%d bytes of the page, %v; want %d", len(body), err, len(page))
		}
	}
}
