package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/peercred"
)

// The largest answer that a client reads: a full ring with its marks is a few
// megabytes.
const maxAnswer = 64 << 20

// Client talks to an exporter. It is safe for concurrent use and keeps a connection
// open between calls; it never repeats a request.
type Client struct {
	where string // the socket, or the address
	base  string // what paths are appended to
	http  *http.Client
}

// NewClient returns a client for the exporter of this machine that listens on socket;
// empty means DefaultSocket. Nothing is dialled before the first call.
func NewClient(socket string) *Client {
	socket = cmp.Or(socket, DefaultSocket)
	return newClient(socket, "http://exporter", peercred.Transport(socket))
}

func newClient(where, base string, t *http.Transport) *Client {
	t.MaxIdleConnsPerHost, t.IdleConnTimeout = 2, 30*time.Second
	return &Client{where: where, base: base, http: peercred.Client(t)}
}

// Close drops the connections that are kept open. The client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Node asks what machine this is and what it can measure.
func (c *Client) Node(ctx context.Context) (n Node, err error) {
	err = c.call(ctx, http.MethodGet, PathNode, nil, &n)
	return n, err
}

// Jobs lists the jobs that the caller may see, ended ones included for as long as
// their samples are kept.
func (c *Client) Jobs(ctx context.Context) (jobs []Job, err error) {
	err = c.call(ctx, http.MethodGet, PathJobs, nil, &jobs)
	return jobs, err
}

// Window returns the samples of one attempt of a job with a sequence number
// greater than after; attempt 0 means the newest one. jobID is the manager's own id,
// or "<manager>/<id>", such as slurm/42, where a node has several managers; of an
// array's task it is the number that is its own (squeue's %A). A job that the
// exporter does not know, or that is not the caller's, is ErrNotFound.
func (c *Client) Window(ctx context.Context, jobID string, attempt int, after uint64) (w Window, err error) {
	err = c.call(ctx, http.MethodGet, jobPath(PathSamples, jobID, attempt, after), nil, &w)
	return w, err
}

// Report reports that an epoch ended. The exporter takes the job from the caller's
// cgroup or environment, so the caller has to run inside the job: elsewhere the
// call is ErrDenied.
func (c *Client) Report(ctx context.Context, r Report) error {
	return c.call(ctx, http.MethodPost, PathProgress, r, nil)
}

// ReportFor reports on a job's behalf that an epoch ended or that it saved, from outside
// the job: root and the exporter's readers may on the socket, and every caller who may read
// over TLS; others get ErrDenied. The job is named as for Window, and attempt 0 means
// the newest. ErrNotFound: the exporter does not know it; a job that begins just now it
// knows a few seconds later.
func (c *Client) ReportFor(ctx context.Context, jobID string, attempt int, r Report) error {
	return c.call(ctx, http.MethodPost, jobPath(PathReport, jobID, attempt, 0), r, nil)
}

// SetBudget sets what a job may use, for the caller's own origin: a caller who sees the jobs of
// all users speaks as the controller, any other as the owner of his jobs. A budget without
// joules removes the caller's. The job is named as for Window, and attempt 0 means the newest.
// ErrNotFound: the exporter does not know it, or it is not the caller's.
func (c *Client) SetBudget(ctx context.Context, jobID string, attempt int, b Budget) error {
	return c.call(ctx, http.MethodPut, jobPath(PathBudget, jobID, attempt, 0), b, nil)
}

func jobPath(pattern, jobID string, attempt int, after uint64) string {
	query := url.Values{}
	if attempt > 0 {
		query.Set("attempt", strconv.Itoa(attempt))
	}
	if after > 0 {
		query.Set("after", strconv.FormatUint(after, 10))
	}
	u := url.URL{RawQuery: query.Encode()}
	return strings.Replace(pattern, "{id}", url.PathEscape(jobID), 1) + u.String()
}

func (c *Client) call(ctx context.Context, method, path string, question, answer any) error {
	res, err := peercred.Ask(ctx, c.http, method, c.base+path, question)
	if _, sent := errors.AsType[*url.Error](err); err != nil && !sent {
		return fmt.Errorf("%s %s: %w: %w", method, path, ErrInvalid, err)
	}
	if err != nil {
		return fmt.Errorf("%s %s on %s: %w: %w", method, path, c.where, ErrUnavailable, err)
	}
	defer func() { _ = res.Body.Close() }() // read to its end or given up: nothing is lost
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %w: %s", method, path, sentinel(res.StatusCode), problem(res))
	}
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(answer); err != nil {
		return fmt.Errorf("%s %s: answer: %w: %w", method, path, ErrUnavailable, err)
	}
	return nil
}

func sentinel(status int) error {
	switch status {
	case http.StatusNotFound, http.StatusMovedPermanently, http.StatusTemporaryRedirect:
		return ErrNotFound // what is asked for is not at that path
	case http.StatusForbidden, http.StatusUnauthorized:
		return ErrDenied
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge:
		return ErrInvalid
	case http.StatusTooManyRequests:
		return ErrBusy
	default:
		return ErrUnavailable
	}
}

func problem(res *http.Response) string {
	var p Problem
	if json.NewDecoder(io.LimitReader(res.Body, 4<<10)).Decode(&p) == nil && p.Error != "" {
		return p.Error
	}
	return res.Status
}

const (
	schemeUnix = "unix:"
	schemeTLS  = "https://"
	// The longest path that fits into the kernel's sockaddr_un with its ending zero.
	maxSocketPath = 107
	// dialPatience is how long an address is tried, dialNext where there are more.
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
// certificates are only for https: callers show their own, and the exporter's must be for
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

// NewClientOf returns a client for the exporter of the node with that name, which must be in
// the exporter's certificate. Each time when a connection is made, addresses returns where it
// may be, as HOST:PORT; they are tried one after the other, so that one that is out of date, or
// that another program has taken, leads nowhere and hides none of the others. What addresses
// fails with is wrapped, in ErrUnavailable too.
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

// Errors of a call, by what the caller can do about it. The client wraps them
// with what was asked and what the exporter answered.
var (
	// ErrNotFound: the exporter does not see this job, or has forgotten it.
	ErrNotFound = errors.New("not known to the exporter")
	// ErrDenied: the caller may not see this, or is not inside the job.
	ErrDenied = errors.New("denied by the exporter")
	// ErrInvalid: the request can never succeed as it is.
	ErrInvalid = errors.New("invalid request to the exporter")
	// ErrUnavailable: no exporter answers, or it is in trouble; it may succeed later.
	ErrUnavailable = errors.New("exporter unavailable")
	// ErrBusy is ErrUnavailable of an exporter that answers: the caller asks too often.
	ErrBusy = fmt.Errorf("%w: it answers, and refuses further requests", ErrUnavailable)
)

// Problem is the body of every answer that is not a success.
type Problem struct {
	Error string `json:"error"`
}
