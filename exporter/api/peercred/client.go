package peercred

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
)

// Transport dials the socket, whatever host is asked for.
func Transport(socket string) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return Dial(ctx, socket) }}
}

// Client follows no redirect: an id such as ".." would lead elsewhere.
func Client(t *http.Transport) *http.Client {
	return &http.Client{
		Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Ask sends the JSON of a question, or none where it is nil. Its error is a *url.Error unless the
// request could not be made.
func Ask(ctx context.Context, c *http.Client, method, url string, question any) (*http.Response, error) {
	var body io.Reader
	if question != nil {
		text, err := json.Marshal(question)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if question != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.Do(req)
}
