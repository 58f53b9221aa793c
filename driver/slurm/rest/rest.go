package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"pitchpipe/driver/slurm/parse"
)

// ErrForeign is wrapped where a socket is not this user's.
var ErrForeign = errors.New("another user's socket")

const (
	// timeout of one request: sdiag would have answered long before.
	timeout = 2 * time.Second
	// largest answer that is read. The statistics have an entry for each user and kind
	// of request; 22.05 wrote 20 KB on a small cluster.
	largest = 8 << 20
)

// versions of the interface, newest first: each slurmrestd serves a few of them.
func versions() []string {
	return []string{"v0.0.43", "v0.0.42", "v0.0.41", "v0.0.40", "v0.0.39", "v0.0.38", "v0.0.37", "v0.0.36"}
}

// Client is safe for concurrent use.
type Client struct {
	socket string
	http   *http.Client

	mu      sync.Mutex
	version string // the one that was answered; empty = not known
}

// New does not connect yet: slurmrestd may be started later, and again.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if err := own(socket); err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &Client{socket: socket, http: &http.Client{
		Transport: &http.Transport{DialContext: dial, MaxIdleConns: 1, IdleConnTimeout: time.Minute},
		Timeout:   timeout,
	}}
}

// own refuses a socket that is not this user's: whoever can answer in its place could
// have a new job overlooked until the next look at the whole queue.
func own(socket string) error {
	info, err := os.Stat(socket)
	if err != nil {
		return err
	}
	if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: %w", socket, ErrForeign)
	}
	return nil
}

// Close lets go of the connection that is kept.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Activity is what slurmctld has counted so far.
func (c *Client) Activity(ctx context.Context) (parse.Activity, error) {
	try := versions()
	if v := c.known(); v != "" {
		try = []string{v}
	}
	for _, v := range try {
		body, status, err := c.get(ctx, "/slurm/"+v+"/diag/")
		switch {
		case err != nil:
			return parse.Activity{}, fmt.Errorf("slurmrestd: %w", err)
		case status == http.StatusNotFound:
			continue // it serves another version
		case status != http.StatusOK:
			return parse.Activity{}, fmt.Errorf("slurmrestd: %s: status %d: %.200s", v, status, body)
		}
		a, err := parse.Statistics(body)
		if err != nil {
			return parse.Activity{}, fmt.Errorf("slurmrestd: %s: %w", v, err)
		}
		c.know(v)
		return a, nil
	}
	c.know("") // it may have been upgraded
	return parse.Activity{}, fmt.Errorf("slurmrestd: %s: it serves none of %v", c.socket, try)
}

func (c *Client) known() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

func (c *Client) know(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

func (c *Client) get(ctx context.Context, path string) (body []byte, status int, err error) {
	// The name of the host is not looked at on a socket.
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://slurmrestd"+path, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	body, err = io.ReadAll(io.LimitReader(resp.Body, largest))
	return body, resp.StatusCode, err
}
