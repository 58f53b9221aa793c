package server_test

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/server"
	"pitchpipe/exporter/window"
)

// patient takes a mark only when its sender is gone.
type patient struct {
	marker
	began, gone chan struct{}
	took        chan error
}

func (p *patient) Mark(ctx context.Context, who peercred.Caller, r api.Report) error {
	close(p.began)
	<-p.gone
	select {
	case <-ctx.Done():
		p.took <- ctx.Err()
	case <-time.After(200 * time.Millisecond): // long after the server saw that it is gone
		p.took <- p.marker.Mark(ctx, who, r)
	}
	return nil
}

// A job's end kills the listener that has just sent the last epoch.
func TestAReportIsTakenThoughItsSenderIsGone(t *testing.T) {
	t.Parallel()
	p := &patient{began: make(chan struct{}), gone: make(chan struct{}), took: make(chan error, 1)}
	socket := filepath.Join(t.TempDir(), "s")
	s, err := server.New(server.Config{Socket: socket}, static(api.Node{}), window.New(window.Config{}), p, http.NotFoundHandler())
	if err != nil {
		t.Fatal(err)
	}
	serve(t, s.Run)
	var conn net.Conn
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if conn, err = (&net.Dialer{}).DialContext(t.Context(), "unix", socket); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write([]byte("POST " + api.PathProgress + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nsaved")); err != nil {
		t.Fatal(err)
	}
	<-p.began
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	close(p.gone)
	if err := <-p.took; err != nil {
		t.Errorf("not taken: %v", err)
	}
	if len(p.got) != 1 || !p.got[0].Saved {
		t.Errorf("took %+v, want that it saved", p.got)
	}
}
