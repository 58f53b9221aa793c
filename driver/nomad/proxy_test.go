package nomad_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/nomad/api"
)

// proxy passes requests of a driver on to an agent: tests see the requests, act just before
// one, and lose answers.
type proxy struct {
	mu     sync.Mutex
	before func(*http.Request)                        // called with each request
	cut    func(r *http.Request) (before, after bool) // the request or its answer is lost
	answer func(r *http.Response) error               // changes an answer
	asked  []string                                   // METHOD PATH of what may change something
}

// question reports whether the request asks for the right to register, and changes nothing.
func question(r *http.Request) bool { return r.URL.Path == "/v1/job/pitchpipe-may-register" }

// call reports whether a request changes something: a registration, a stop, a signal.
func call(r *http.Request) bool {
	return !question(r) && r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/plan") && !strings.HasPrefix(r.URL.Path, "/v1/validate") && r.URL.Path != "/v1/jobs/parse"
}

// registers reports whether the request registers a job.
func registers(r *http.Request) bool {
	return !question(r) && r.Method != http.MethodGet && (r.URL.Path == "/v1/jobs" || strings.HasPrefix(r.URL.Path, "/v1/job/") && !strings.HasSuffix(r.URL.Path, "/plan")) && r.Method != http.MethodDelete
}

// client is one that goes through the proxy to the agent of another.
func (p *proxy) client(t *testing.T, to *api.Client) *api.Client {
	t.Helper()
	target, err := url.Parse(to.Address())
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.FlushInterval = -1
	forward.ModifyResponse = func(r *http.Response) error {
		p.mu.Lock()
		answer := p.answer
		p.mu.Unlock()
		if answer == nil {
			return nil
		}
		return answer(r)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		before, cut := p.before, p.cut
		if call(r) {
			p.asked = append(p.asked, r.Method+" "+r.URL.Path)
		}
		p.mu.Unlock()
		if before != nil {
			before(r)
		}
		lostBefore, lostAfter := false, false
		if cut != nil {
			lostBefore, lostAfter = cut(r)
		}
		if lostBefore {
			panic(http.ErrAbortHandler)
		}
		if lostAfter {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := api.NewClient(&api.Config{Address: server.URL, HttpClient: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (p *proxy) set(f func(*proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

// first calls f just before the first request of a kind is passed on.
func (p *proxy) first(is func(*http.Request) bool, f func()) {
	var once sync.Once
	p.set(func(p *proxy) {
		p.before = func(r *http.Request) {
			if is(r) {
				once.Do(f)
			}
		}
	})
}

// count is how often something was asked whose METHOD PATH contains the words.
func (p *proxy) count(words ...string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, a := range p.asked {
		all := true
		for _, w := range words {
			all = all && strings.Contains(a, w)
		}
		if all {
			n++
		}
	}
	return n
}

// edit changes what Nomad answers to requests for some paths.
func edit[T any](p *proxy, asked func(path string) bool, change func(*T)) {
	p.set(func(p *proxy) {
		p.answer = func(r *http.Response) error {
			if !asked(r.Request.URL.Path) {
				return nil
			}
			var what T
			if err := heard(r, &what); err != nil {
				return err
			}
			change(&what)
			return say(r, what)
		}
	})
}

// heard reads an answer.
func heard(r *http.Response, into any) error {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		plain, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = plain
	}
	return json.NewDecoder(body).Decode(into)
}

// say makes an answer say something else.
func say(r *http.Response, what any) error {
	data, err := json.Marshal(what)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	r.Header.Del("Content-Length")
	r.Header.Del("Content-Encoding")
	return err
}
