package api_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/certs/certstest"
)

// answering serves as an exporter with a certificate for a node, and returns where.
func answering(t *testing.T, ca *certstest.Authority, node string) string {
	t.Helper()
	own, err := certs.Open(ca.Files(t, certstest.Leaf{Name: node, DNS: []string{node}, Server: true}, ca), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"hostname":"` + node + `"}`)) }))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) // of handshakes that have to fail
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own.Current().Certificate}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// Anyone who may run a job may register a service: an address leads to the exporter of
// the node only where the node's certificate is.
func TestAnExporterThatIsFoundHasTheCertificateOfItsNode(t *testing.T) {
	t.Parallel()
	ca, other := certstest.New(t, "site"), certstest.New(t, "another site")
	own, err := certs.Open(ca.Files(t, certstest.Leaf{Name: "controller", Client: true}, ca), nil)
	if err != nil {
		t.Fatal(err)
	}
	n1, n2, forged := answering(t, ca, "n1"), answering(t, ca, "n2"), answering(t, other, "n1")
	var lc net.ListenConfig
	mute, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0") // it never shakes hands
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	lost := errors.New("no leader")
	for _, tc := range []struct {
		name string
		at   []string
		err  error
		says string // in the error; empty = it is reached
	}{
		{"one", []string{n1}, nil, ""},
		{"another node's", []string{n2}, nil, "not n1"},
		{"one whose certificate another authority signed", []string{forged}, nil, "unknown authority"},
		{"others hide none", []string{n2, forged, mute.Addr().String(), n1}, nil, ""},
		{"none", nil, nil, "no address"},
		{"its place is unknown", nil, lost, "no leader"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, err := api.NewClientOf("n1", func(context.Context) ([]string, error) { return tc.at, tc.err }, own)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			node, err := c.Node(ctx)
			switch {
			case tc.says == "" && (err != nil || node.Hostname != "n1"):
				t.Errorf("got %+v, %v", node, err)
			case tc.says != "" && (!errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("got %v, want %v that says %q", err, api.ErrUnavailable, tc.says)
			}
		})
	}
	for node, with := range map[string]*certs.Store{"n1": nil, "": own, "n1/x": own, "a b": own} {
		if _, err := api.NewClientOf(node, nil, with); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%q: %v, want %v", node, err, api.ErrInvalid)
		}
	}
}
