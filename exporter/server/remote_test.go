package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/certs/certstest"
	"pitchpipe/exporter/server"
)

func TestOverTLSThoseReadWhoAreListed(t *testing.T) {
	t.Parallel()
	other := certstest.New(t, "another site")
	for _, tc := range []struct {
		name   string
		node   certstest.Leaf
		leaf   certstest.Leaf
		signed *certstest.Authority // nil = the site
		trusts *certstest.Authority // nil = the site
		want   error                // nil = all jobs are seen
		reason string               // in the exporter's log
		says   string               // in the caller's error
	}{
		{name: "the controller by its common name", leaf: controller()},
		{name: "the controller by a DNS name", leaf: certstest.Leaf{Name: "x", DNS: []string{"y", "CTL.example.org"}, Client: true}},
		{
			name: "a name that is not listed", leaf: certstest.Leaf{Name: "stranger", Client: true},
			want: api.ErrDenied, reason: "stranger", says: "not one that may read",
		},
		{
			name: "a wildcard is no name that is listed", leaf: certstest.Leaf{Name: "*", DNS: []string{"*.example.org"}, Client: true},
			want: api.ErrDenied, reason: "may read here", says: "not one that may read",
		},
		{
			name: "the listed name from another authority", leaf: controller(), signed: other,
			want: api.ErrUnavailable, reason: "unknown authority", says: "unknown certificate authority",
		},
		{
			name: "an expired certificate", leaf: certstest.Leaf{Name: "controller", Client: true, For: -time.Hour},
			want: api.ErrUnavailable, reason: "expired", says: "expired",
		},
		{
			name: "another node's certificate, which is a server's", leaf: certstest.Leaf{Name: "controller", Server: true},
			want: api.ErrUnavailable, reason: "incompatible key usage", says: "bad certificate",
		},
		{
			name: "a caller who believes another authority", leaf: controller(), trusts: other,
			want: api.ErrUnavailable, reason: "bad certificate", says: "unknown authority",
		},
		{
			name: "an exporter whose certificate is for another host", leaf: controller(),
			node: certstest.Leaf{Name: "n2", IPs: []net.IP{net.IPv4(127, 0, 0, 2)}, Server: true},
			want: api.ErrUnavailable, reason: "bad certificate", says: "127.0.0.2",
		},
		{
			name: "an exporter whose certificate expired", leaf: controller(),
			node: certstest.Leaf{Name: "n1", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true, For: -time.Hour},
			want: api.ErrUnavailable, reason: "expired=true", says: "expired",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.node.Name == "" {
				tc.node = node()
			}
			s := newSite(t, tc.node)
			if tc.signed == nil {
				tc.signed = s.ca
			}
			if tc.trusts == nil {
				tc.trusts = s.ca
			}
			c := s.client(t, tc.signed.Files(t, tc.leaf, tc.trusts))
			jobs, err := c.Jobs(t.Context())
			for range 5 { // a client that still writes may miss why its connection was closed
				if err != nil && strings.Contains(err.Error(), "use of closed network connection") {
					jobs, err = c.Jobs(t.Context())
				}
			}
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if tc.want == nil {
				if len(jobs) != 2 {
					t.Errorf("saw %+v, want the jobs of both users", jobs)
				}
				if strings.Contains(s.said.String(), "refused") {
					t.Errorf("the log has a refusal:\n%s", &s.said)
				}
				return
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want it to say %q", err, tc.says)
			}
			s.hears(t, tc.reason)
		})
	}
}

func TestOverTLSCallersWithoutACertificateAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, node())
	own, err := certs.Open(s.ca.Files(t, controller(), s.ca), nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := own.Current().CA
	for _, tc := range []struct {
		name   string
		url    string
		cfg    *tls.Config
		reason string
	}{
		{"no certificate", s.address, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, "didn't provide a certificate"},
		{
			"an old TLS", s.address,
			&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, Certificates: []tls.Certificate{own.Current().Certificate}}, //nolint:gosec // that is what has to fail
			"unsupported versions",
		},
		{"no TLS", strings.Replace(s.address, "https", "http", 1), nil, "HTTP request to an HTTPS server"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			transport := &http.Transport{TLSClientConfig: tc.cfg}
			defer transport.CloseIdleConnections()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, tc.url+api.PathJobs, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := transport.RoundTrip(req)
			if err == nil {
				_ = res.Body.Close()
				if res.StatusCode != http.StatusBadRequest { // which is how Go answers plain HTTP
					t.Errorf("answered %s", res.Status)
				}
			}
			s.hears(t, tc.reason)
		})
	}
}

// Over TLS a report names its job: where the caller runs says nothing here.
func TestOverTLSNoOneReportsFromInsideAJob(t *testing.T) {
	t.Parallel()
	s := newSite(t, node())
	c := s.client(t, s.ca.Files(t, controller(), s.ca))
	if err := c.Report(t.Context(), api.Report{Epoch: 1}); !errors.Is(err, api.ErrNotFound) {
		t.Errorf("got %v, want %v", err, api.ErrNotFound)
	}
	if len(s.marker.got) > 0 {
		t.Errorf("passed on %+v", s.marker.got)
	}
}

func TestCertificatesAreRenewedWithoutARestart(t *testing.T) {
	t.Parallel()
	s := newSite(t, node())
	files := s.ca.Files(t, controller(), s.ca)
	c := s.client(t, files)
	if _, err := c.Jobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The exporter gets a new certificate and a new authority for its callers. A
	// caller with the old one is out, with the connection that he has.
	next := certstest.New(t, "next")
	next.Renew(t, s.files, node(), next)
	until(t, "the old certificate is refused", func() bool {
		_, err := c.Jobs(t.Context())
		return err != nil
	})
	s.hears(t, "unknown authority")
	// The controller is renewed in its place, and the same client gets in again.
	next.Renew(t, files, controller(), next)
	until(t, "the new certificate is taken", func() bool {
		_, err := c.Jobs(t.Context())
		return err == nil
	})
}

func TestAnOpenConnectionIsRefusedOnceItsCertificateExpired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ca := certstest.New(t, "site")
		s, err := server.New(server.Config{Socket: "unused", Remote: server.Remote{
			Address: "127.0.0.1:0", Certs: ca.Files(t, node(), ca), Clients: []string{"controller"},
		}}, static(api.Node{}), fill(t), &marker{}, http.NotFoundHandler())
		if err != nil {
			t.Fatal(err)
		}
		caller := controller()
		caller.For = 90 * time.Second
		state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{parse(t, ca.Files(t, caller, ca).Cert)}}
		for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusForbidden} {
			rec := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, api.PathJobs, nil)
			req.TLS = state
			s.RemoteHandler().ServeHTTP(rec, req)
			if rec.Code != want {
				t.Errorf("%d %s, want %d", rec.Code, rec.Body, want)
			}
			time.Sleep(45*time.Second + time.Millisecond)
		}
	})
}

func parse(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(raw)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestStrangersDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	s := newSite(t, node())
	c := s.client(t, s.ca.Files(t, certstest.Leaf{Name: "stranger", Client: true}, s.ca))
	for range 100 {
		if _, err := c.Jobs(t.Context()); !errors.Is(err, api.ErrDenied) {
			t.Fatal(err)
		}
	}
	if n := strings.Count(s.said.String(), "stranger"); n == 0 || n > 60 { // twenty a minute
		t.Errorf("%d lines about 100 refusals", n)
	}
}

func TestServingOverTLSNeedsAllThatMakesItSafe(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t, "site")
	good := ca.Files(t, node(), ca)
	another := ca.Files(t, node(), ca)
	open := ca.Files(t, node(), ca)
	if err := os.Chmod(open.Key, 0o604); err != nil { //nolint:gosec // that is what must be refused
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	who := []string{"controller"}
	for _, tc := range []struct {
		name string
		cfg  server.Remote
		says string // empty = it is accepted
	}{
		{"everything", server.Remote{Address: "127.0.0.1:0", Certs: good, Clients: who}, ""},
		{"nothing", server.Remote{}, ""},
		{"no certificates", server.Remote{Address: "127.0.0.1:0", Clients: who}, "on loopback too"},
		{"no authority", server.Remote{Address: "127.0.0.1:0", Certs: certs.Files{Cert: good.Cert, Key: good.Key}, Clients: who}, "authority of the callers"},
		{"no one who may read", server.Remote{Address: "127.0.0.1:0", Certs: good}, "names of those who may read"},
		{"a caller without a name", server.Remote{Address: "127.0.0.1:0", Certs: good, Clients: []string{""}}, "names of those who may read"},
		{"certificates and no address", server.Remote{Certs: good, Clients: who}, "--api.listen-address=: want HOST:PORT: missing port"},
		{"an address without a port", server.Remote{Address: "127.0.0.1", Certs: good, Clients: who}, "missing port"},
		{"a file that is missing", server.Remote{Address: "127.0.0.1:0", Certs: certs.Files{Cert: good.Cert, Key: good.Key, CA: "/nonexistent/ca"}, Clients: who}, "no such file"},
		{"a key that is another's", server.Remote{Address: "127.0.0.1:0", Certs: certs.Files{Cert: good.Cert, Key: another.Key, CA: good.CA}, Clients: who}, "does not match"},
		{"a key that all users can read", server.Remote{Address: "127.0.0.1:0", Certs: open, Clients: who}, "every user can use the key"},
		{"an authority without a certificate", server.Remote{Address: "127.0.0.1:0", Certs: certs.Files{Cert: good.Cert, Key: good.Key, CA: empty}, Clients: who}, "holds no certificate"},
	} {
		_, err := server.New(server.Config{Socket: "unused", Remote: tc.cfg}, static(api.Node{}), nil, nil, nil)
		switch {
		case tc.says == "" && err != nil:
			t.Errorf("%s: refused: %v", tc.name, err)
		case tc.says != "" && (!errors.Is(err, server.ErrRemote) || !strings.Contains(err.Error(), tc.says)):
			t.Errorf("%s: got %v, want %v that says %q", tc.name, err, server.ErrRemote, tc.says)
		}
	}
}
