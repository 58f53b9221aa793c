package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"

	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/peercred"
)

// Remote is how callers on other machines are served: over TLS with certificates on
// both sides. They read, and report on behalf of jobs that they name.
type Remote struct {
	Address string // HOST:PORT; empty, with all else, = no other machine is served
	// Certs are the exporter's certificate and key, and the authority that a caller's
	// certificate has to come from.
	Certs certs.Files
	// Clients are the names that may read the jobs of all users: the common name of a
	// caller's certificate, or one of its DNS names. They also report and set budgets.
	Clients []string
	// Scrapers are those that may read the metrics, of all users' jobs, and nothing else.
	Scrapers []string
}

// ErrRemote means that callers on other machines cannot be served as was asked.
var ErrRemote = errors.New("serving the API over TLS")

// maxCallers is how many connections there are at a time, half of them of one address:
// each controller keeps two.
const maxCallers = 64

type remote struct {
	*Server
	own     *certs.Store
	refused *peercred.Complaints
}

func (s *Server) newRemote() (*remote, error) {
	cfg := s.cfg.Remote
	if _, _, err := net.SplitHostPort(cfg.Address); err != nil {
		return nil, fmt.Errorf("%w: --api.listen-address=%s: want HOST:PORT: %w", ErrRemote, cfg.Address, err)
	}
	if cfg.Certs.Cert == "" || cfg.Certs.Key == "" || cfg.Certs.CA == "" {
		return nil, fmt.Errorf("%w on %s: a certificate, its key and the authority of the callers are needed, on loopback too: every user of this machine reaches that", ErrRemote, cfg.Address)
	}
	if names := slices.Concat(cfg.Clients, cfg.Scrapers); len(names) == 0 || slices.Contains(names, "") {
		return nil, fmt.Errorf("%w on %s: the names of those who may read are needed", ErrRemote, cfg.Address)
	}
	own, err := certs.Open(cfg.Certs, s.log)
	if err != nil {
		return nil, fmt.Errorf("%w on %s: %w", ErrRemote, cfg.Address, err)
	}
	return &remote{Server: s, own: own, refused: &peercred.Complaints{Log: s.log}}, nil
}

func (m *remote) serve(ctx context.Context, l net.Listener) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	bounded := &peercred.Listener{
		Listener: l, Room: peercred.Room{All: maxCallers, Strangers: maxCallers, Each: maxCallers / 2},
		Full: func(c peercred.Caller) { m.refused.Add(c.String(), errCrowd) },
	}
	return peercred.Serve(ctx, &http.Server{
		Handler: m.handler(), ErrorLog: slog.NewLogLogger(m.refused, slog.LevelWarn), Protocols: protocols,
	}, tls.NewListener(bounded, &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: m.config}), graceful)
}

// config returns the TLS configuration of one handshake, with what the files hold now.
func (m *remote) config(*tls.ClientHelloInfo) (*tls.Config, error) {
	now := m.own.Current()
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{now.Certificate},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: now.CA, NextProtos: []string{"http/1.1"},
		SessionTicketsDisabled: true,
	}, nil
}

func (m *remote) handler() http.Handler {
	mux := http.NewServeMux()
	m.register(mux)
	limited := http.MaxBytesHandler(mux, maxBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := m.admit(r); err != nil {
			m.refused.Add(r.RemoteAddr, err)
			w.Header().Set("Connection", "close")
			m.refuse(w, problem{http.StatusForbidden, err})
			return
		}
		limited.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), peerKey{}, peer{all: true})))
	})
}

// admit reports why the caller may not ask for this; nil = the caller may. The handshake
// verified the certificate, and admit does it again for each request: since the connection was
// opened it may have expired, or its authority may no longer be believed.
func (m *remote) admit(r *http.Request) error {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return errors.New("no certificate")
	}
	leaf := r.TLS.PeerCertificates[0]
	switch scraping := r.Method == http.MethodGet && r.URL.Path == "/metrics"; {
	case listed(leaf, m.cfg.Remote.Clients), scraping && listed(leaf, m.cfg.Remote.Scrapers):
	case listed(leaf, m.cfg.Remote.Scrapers):
		return fmt.Errorf("the certificate of %q is for the metrics alone", names(leaf))
	default:
		return fmt.Errorf("the certificate of %q is good, and the name is not one that may read here", names(leaf))
	}
	options := x509.VerifyOptions{Roots: m.own.Current().CA, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, c := range r.TLS.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(options); err != nil {
		return fmt.Errorf("the certificate of %q: %w", names(leaf), err)
	}
	return nil
}

func listed(leaf *x509.Certificate, among []string) bool {
	return slices.ContainsFunc(among, func(name string) bool {
		return name == leaf.Subject.CommonName ||
			slices.ContainsFunc(leaf.DNSNames, func(dns string) bool { return strings.EqualFold(name, dns) })
	})
}

func names(leaf *x509.Certificate) []string {
	return append([]string{leaf.Subject.CommonName}, leaf.DNSNames...)
}
