package broker_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pitchpipe/driver/slurm/broker"
	"pitchpipe/exporter/api/peercred/peercredtest"
)

// turned reports whether a connection was closed by the broker before anything was asked.
func turned(t *testing.T, conn net.Conn) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Read(make([]byte, 1))
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
}

func TestManyConnectionsDoNotKeepTheControllerOut(t *testing.T) {
	t.Parallel()
	var log lines
	r := newRig(t, func(c *broker.Config) {
		c.Controllers = []uint32{65001}
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	if err := os.Chmod(filepath.Dir(r.cfg.Socket), 0o755); err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	peercredtest.As(t, 65002, func() {
		for range 40 {
			conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: r.cfg.Socket, Net: "unix"})
			if err != nil {
				t.Error(err)
				return
			}
			conns = append(conns, conn)
		}
	})
	peercredtest.As(t, 65001, func() {
		answer, err := raw(r.cfg.Socket, "/v1/signal", `{"job":"7","signal":"SIGUSR1"}`)
		if err != nil || !strings.Contains(answer, "200 OK") {
			t.Errorf("the controller gets %q (%v)", answer, err)
		}
	})
	open := 0
	for _, conn := range conns {
		if !turned(t, conn) {
			open++
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if open > 8 {
		t.Errorf("%d connections of one user were served at a time, want at most 8", open)
	}
	if n := log.count("too many connections"); n == 0 || n > 20 {
		t.Errorf("%d lines about 32 connections that were closed, want 1 to 20", n)
	}
	// Their places are free again.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var answer string
		peercredtest.As(t, 65002, func() { answer, _ = raw(r.cfg.Socket, "/v1/signal", "{}") })
		if strings.Contains(answer, "only the site's controller may ask") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the places of connections that were closed stay taken")
		}
	}
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(words string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), words)
}
