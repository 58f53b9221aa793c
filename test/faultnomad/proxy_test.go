package faultnomad_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// When a request is struck.
const (
	before = "before:" // the agent has not seen it
	behind = "behind:" // it had its effect, and the controller does not know
	after  = "after:"  // the answer is on its way
)

// The requests of a move.
const (
	atPlan     = "plan"       // the dry run before the signal
	atSignal   = "signal"     // asks the job to save
	atWait     = "wait"       // the first look at the allocations after that
	atAgain    = "plan-again" // the dry run when it has saved
	atRegister = "register"
	atVerify   = "verify" // the first look at the allocations after that
)

// order says at which points a request is to be struck: at the first of them that one of
// the proxies that have it reaches.
type order struct {
	points []string
	wants  func(job string) bool
	hit    chan hit

	taken atomic.Bool
}

func newOrder(points []string, wants func(job string) bool) *order {
	return &order{points: points, wants: wants, hit: make(chan hit, 1)}
}

// withdraw takes the order back; false: it is being carried out.
func (o *order) withdraw() bool { return o.taken.CompareAndSwap(false, true) }

// hit is a request that was struck and waits to be let go, or to be lost.
type hit struct {
	point, job string
	lost       chan bool
}

// proxy is between a controller and the agent.
type proxy struct {
	addr      string
	namespace string
	forward   *httputil.ReverseProxy
	jobOf     func(alloc string) string

	mu       sync.Mutex
	armed    *order
	stage    map[string]string // by job: the last of its requests that changed something
	inFlight map[*context.CancelFunc]struct{}
	down     bool
}

func newProxy(t *testing.T, agent, namespace string, jobOf func(alloc string) string) *proxy {
	t.Helper()
	to, err := url.Parse(agent)
	if err != nil {
		t.Fatal(err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	p := &proxy{
		addr: "http://" + l.Addr().String(), namespace: namespace, jobOf: jobOf,
		stage: map[string]string{}, inFlight: map[*context.CancelFunc]struct{}{},
		forward: &httputil.ReverseProxy{
			FlushInterval: -1, Transport: transport, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
			Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
			// The client sees a connection that fails, as without a proxy.
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		},
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: p.forward.ErrorLog}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		err := server.Close()
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		transport.CloseIdleConnections()
		if err != nil {
			t.Error(err)
		}
	})
	return p
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if !p.enter(&cancel) {
		panic(http.ErrAbortHandler)
	}
	defer p.leave(&cancel)
	r = r.WithContext(ctx)
	kind, job := p.understand(r)
	if kind == "" {
		p.forward.ServeHTTP(w, r)
		return
	}
	if p.reached(before+kind, job) {
		panic(http.ErrAbortHandler)
	}
	// A request that is to be lost after its effect has it, no matter who hangs up.
	rec := httptest.NewRecorder()
	p.forward.ServeHTTP(rec, r.WithContext(context.WithoutCancel(ctx)))
	p.passed(kind, job)
	if p.reached(behind+kind, job) || ctx.Err() != nil {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()) // who has gone needs no answer
	_ = http.NewResponseController(w).Flush()
	p.reached(after+kind, job)
}

func (p *proxy) enter(cancel *context.CancelFunc) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return false
	}
	p.inFlight[cancel] = struct{}{}
	return true
}

func (p *proxy) leave(cancel *context.CancelFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.inFlight, cancel)
}

// cut ends all that is under way and answers no request until it is called again.
func (p *proxy) cut(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
	for cancel := range p.inFlight {
		if down {
			(*cancel)()
		}
	}
}

// understand returns which request of a move it is, and its job; empty where it is not one.
func (p *proxy) understand(r *http.Request) (kind, job string) {
	path := r.URL.Path
	words := strings.Split(strings.TrimPrefix(path, "/v1/"), "/")
	write := r.Method == http.MethodPut || r.Method == http.MethodPost
	switch {
	case write && path == "/v1/jobs":
		return atRegister, p.jobIn(r)
	case write && len(words) == 3 && words[0] == "job" && words[2] == "plan":
		body := read(r)
		if bytes.Contains(body, []byte(`"PITCHPIPE_INTENT":"outlook"`)) {
			return "", ""
		}
		job = words[1] + "@" + p.namespace
		if p.last(job) == atSignal || p.last(job) == atWait {
			return atAgain, job
		}
		return atPlan, job
	case write && len(words) == 4 && words[1] == "allocation" && words[3] == "signal":
		return atSignal, p.jobOf(words[2])
	case r.Method == http.MethodGet && len(words) == 3 && words[0] == "job" && words[2] == "allocations":
		job = words[1] + "@" + p.namespace
		switch p.last(job) {
		case atSignal:
			return atWait, job
		case atRegister:
			return atVerify, job
		}
	}
	return "", ""
}

// read takes the body out of a request and puts it back.
func read(r *http.Request) []byte {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

func (p *proxy) jobIn(r *http.Request) string {
	var in struct{ Job struct{ ID string } }
	if err := json.Unmarshal(read(r), &in); err != nil {
		return ""
	}
	return in.Job.ID + "@" + p.namespace
}

func (p *proxy) last(job string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stage[job]
}

func (p *proxy) passed(kind, job string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage[job] = kind
}

// arm leaves an order; what is armed already is taken back.
func (p *proxy) arm(o *order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = o
}

// disarm takes the order away.
func (p *proxy) disarm(o *order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.armed == o {
		p.armed = nil
	}
}

// reached carries out an order that is for the point, and reports whether the request is
// lost.
func (p *proxy) reached(point, job string) (lost bool) {
	p.mu.Lock()
	o := p.armed
	p.mu.Unlock()
	if o == nil || !slices.Contains(o.points, point) || !o.wants(job) || !o.taken.CompareAndSwap(false, true) {
		return false
	}
	p.disarm(o)
	h := hit{point: point, job: job, lost: make(chan bool, 1)}
	o.hit <- h
	if strings.HasPrefix(point, after) {
		return false
	}
	select {
	case lost = <-h.lost:
	case <-time.After(2 * time.Minute): // a harness that failed
	}
	return lost
}
