package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pitchpipe/exporter/api/certs"
)

const (
	schemeUnix = "unix:"
	schemeTLS  = "https://"
	// The longest path that fits into the kernel's sockaddr_un with its ending zero.
	maxSocketPath = 107
	// dialPatience is for how long an address is tried, dialNext where there are more.
	dialPatience = 10 * time.Second
	dialNext     = time.Second
)

// CheckAddress reports whether an exporter can listen there: unix:/PATH, on this
// machine, or https://HOST:PORT, on another. ErrInvalid: it cannot.
func CheckAddress(address string) error {
	if path, ok := strings.CutPrefix(address, schemeUnix); ok {
		if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) || len(path) > maxSocketPath {
			return fmt.Errorf("%w: %q: want an absolute path of at most %d bytes", ErrInvalid, address, maxSocketPath)
		}
		return nil
	}
	_, err := host(address)
	return err
}

// host is the name in an address https://HOST:PORT.
func host(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("%w: address: %w", ErrInvalid, err)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 || u.Hostname() == "" || address != schemeTLS+u.Host {
		return "", fmt.Errorf("%w: %q: want unix:/PATH or https://HOST:PORT", ErrInvalid, address)
	}
	return u.Hostname(), nil
}

// NewClientAt returns a client for the exporter at an address that CheckAddress takes. The
// certificates are for https alone: the caller shows his own, and the exporter's has to be for
// that host and from their authority. Their files are read when a connection is made. A job
// reports its own progress on sockets only: elsewhere Report is ErrNotFound, and ReportFor
// works.
func NewClientAt(address string, own *certs.Store) (*Client, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	if path, ok := strings.CutPrefix(address, schemeUnix); ok {
		return NewClient(path), nil
	}
	at := strings.TrimPrefix(address, schemeTLS)
	return overTLS(address, address, func(context.Context) ([]string, error) { return []string{at}, nil }, own)
}

// NewClientOf returns a client for the exporter of the node with that name, which has to
// be in the exporter's certificate. Each time when a connection is made, addresses returns
// where it may be, as HOST:PORT; they are tried one after the other, so that one that is
// out of date, or that another program has taken, leads nowhere and hides none of the
// others. What addresses fails with is wrapped, in ErrUnavailable too.
func NewClientOf(node string, addresses func(context.Context) ([]string, error), own *certs.Store) (*Client, error) {
	return overTLS("node "+node, schemeTLS+node+":443", addresses, own) // the port is never dialled
}

func overTLS(where, base string, addresses func(context.Context) ([]string, error), own *certs.Store) (*Client, error) {
	name, err := host(base)
	if err == nil && own == nil {
		err = fmt.Errorf("%w: %s: a certificate, its key and an authority are needed", ErrInvalid, where)
	}
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, at string) (net.Conn, error) {
		m := own.Current()
		d := tls.Dialer{Config: &tls.Config{
			MinVersion: tls.VersionTLS13, ServerName: name, RootCAs: m.CA,
			// Shown to exporters of another authority too: their refusal then says why.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &m.Certificate, nil },
		}}
		return d.DialContext(ctx, "tcp", at)
	}
	return newClient(where, base, &http.Transport{
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			all, err := addresses(ctx)
			if err != nil {
				return nil, err
			}
			errs := make([]error, 0, len(all))
			for i, at := range all {
				// The transport dials on after a caller has given up, so that his deadline is
				// not here; what it gets serves the next one.
				patience := dialPatience
				if i < len(all)-1 {
					patience = dialNext
				}
				once, cancel := context.WithTimeout(ctx, patience)
				conn, err := dial(once, at)
				cancel()
				if err == nil {
					return conn, nil
				}
				errs = append(errs, err)
			}
			if len(errs) == 0 {
				return nil, errors.New("no address")
			}
			return nil, errors.Join(errs...)
		},
	}), nil
}
