package api

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"pitchpipe/exporter/api/certs"
)

const (
	schemeUnix = "unix:"
	schemeTLS  = "https://"
	// The longest path that fits into the kernel's sockaddr_un with its ending zero.
	maxSocketPath = 107
)

// CheckAddress tells whether an exporter can listen there: unix:/PATH, on this
// machine, or https://HOST:PORT, on another. ErrInvalid: it cannot.
func CheckAddress(address string) error {
	if path, ok := strings.CutPrefix(address, schemeUnix); ok {
		if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) || len(path) > maxSocketPath {
			return fmt.Errorf("%w: %q: want an absolute path of at most %d bytes", ErrInvalid, address, maxSocketPath)
		}
		return nil
	}
	_, err := hostPort(address)
	return err
}

func hostPort(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("%w: address: %w", ErrInvalid, err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 || u.Hostname() == "" || address != schemeTLS+u.Host {
		return "", fmt.Errorf("%w: %q: want unix:/PATH or https://HOST:PORT", ErrInvalid, address)
	}
	return u.Host, nil
}

// NewClientAt returns a client for the exporter at an address that CheckAddress
// takes. The certificates are for https alone: the caller shows his own, and the
// exporter's has to be for that host and from their authority. What they hold counts
// when a connection is made. Progress is reported on sockets only: elsewhere Report
// is ErrNotFound.
func NewClientAt(address string, own *certs.Store) (*Client, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(address, schemeUnix); ok {
		return NewClient(path), nil
	}
	if own == nil {
		return nil, fmt.Errorf("%w: %s: a certificate, its key and an authority are needed", ErrInvalid, address)
	}
	at, err := hostPort(address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return nil, fmt.Errorf("%w: address: %w", ErrInvalid, err)
	}
	return newClient(address, address, &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			m := own.Current()
			d := tls.Dialer{Config: &tls.Config{
				MinVersion: tls.VersionTLS13, ServerName: host, RootCAs: m.CA,
				// Shown to exporters of another authority too: their refusal then says why.
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &m.Certificate, nil },
			}}
			return d.DialContext(ctx, "tcp", at)
		},
	}), nil
}
