package benchnomad

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// proxy passes on what the controller asks of the agent, and counts it.
type proxy struct {
	addr     string
	requests atomic.Int64
	bytes    atomic.Int64 // of the answers
	server   *http.Server
	done     chan error
}

func newProxy(ctx context.Context, agent string) (*proxy, error) {
	to, err := url.Parse(agent)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{addr: "http://" + l.Addr().String(), done: make(chan error, 1)}
	pass := &httputil.ReverseProxy{
		FlushInterval: -1, // streams go on as they come
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			r.Body = counted{r.Body, &p.bytes}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.requests.Add(1)
		pass.ServeHTTP(w, r)
	})}
	go func() { p.done <- p.server.Serve(l) }()
	return p, nil
}

func (p *proxy) close() error {
	err := p.server.Close()
	if served := <-p.done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
