package server_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/certs/certstest"
	"pitchpipe/exporter/server"
)

// The jobs' samples matter more than the callers on other machines.
func TestAnAddressThatIsTakenIsTriedAgainWhileTheSocketServes(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	ca := certstest.New(t, "site")
	var log said
	socket := filepath.Join(t.TempDir(), "s")
	serveOn(t, socket, server.Config{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Remote: server.Remote{Address: address, Certs: ca.Files(t, node(), ca), Clients: []string{"controller"}},
	})
	local := api.NewClient(socket)
	defer local.Close()
	if _, err := local.Node(t.Context()); err != nil {
		t.Errorf("on the socket: %v", err)
	}
	until(t, "the operator is shown", func() bool { return strings.Contains(log.String(), "an address is not served") })
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	own, err := certs.Open(ca.Files(t, controller(), ca), nil)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := api.NewClientAt("https://"+address, own)
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	until(t, "the address serves", func() bool {
		_, err := remote.Jobs(t.Context())
		return err == nil
	})
}

// A user who sends a report a byte at a time holds nothing up for long.
func TestACallerWhoNeverEndsHisRequestIsLeft(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	serveOn(t, socket, server.Config{})
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "POST "+api.PathProgress+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nepoch=1"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c) // until the other side closes
	if err != nil || strings.Contains(string(answer), http.StatusText(http.StatusNoContent)) {
		t.Errorf("answered %q, %v", answer, err)
	}
}
