package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/server"
)

// Callers who ask for megabytes and read none of them hold up neither the samples nor other
// readers, and take no memory.
func TestASlowClientHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	store := fill(t)
	key := attrib.Key{Manager: attrib.Local, ID: "mine", Attempt: 1}
	values := map[string]float64{}
	for i := range 30 { // more than a socket's buffers take
		values[fmt.Sprintf("column_%d", i)] = 1e9 / 7
	}
	for i := range 2_000 {
		store.Append(key, time.Unix(int64(i), 0), values, nil)
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
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for _, path := range append(slices.Repeat([]string{"/v1/jobs/mine/window"}, 100), "/metrics", "/metrics") {
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
	if now := heap(); now > before+32<<20 {
		t.Errorf("they take %d bytes", now-before)
	}
	// 2. The others, and the sampler, which writes.
	for range 5 {
		store.Append(key, time.Unix(30_000, 0), map[string]float64{api.ColCPUSeconds: 30_000}, nil)
		if w, err := client.Window(t.Context(), "mine", 0, 321); err != nil || len(w.Samples) < 1680 || w.Samples[1679].Seq != 2_001 {
			t.Errorf("%d samples, %v", len(w.Samples), err)
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
