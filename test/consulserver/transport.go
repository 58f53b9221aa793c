package consulserver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
)

// Transport reaches the server without a network, so that a client works in virtual
// time, as of testing/synctest.
func (s *Server) Transport() http.RoundTripper { return inside{s} }

type inside struct{ server *Server }

// RoundTrip implements http.RoundTripper. The server serves a request also where its caller
// does not wait for the answer any more.
func (i inside) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
	}
	in := req.Clone(req.Context())
	in.Body = io.NopCloser(bytes.NewReader(body))
	out := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.server.ServeHTTP(out, in)
	}()
	select {
	case <-done:
		return out.Result(), nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}
