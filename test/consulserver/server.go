package consulserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Config is how a Server differs from a plain one.
type Config struct {
	// Token is what every request has to carry; empty = none is needed.
	Token string
	// MinTTL is the shortest time to live of a session; 0 = 10 s, as Consul has it.
	// Tests that wait for the end of one choose less.
	MinTTL time.Duration
}

// Server is a Consul of one agent. Use New.
type Server struct {
	cfg Config

	mu       sync.Mutex
	index    uint64        // of the last change of anything
	changed  chan struct{} // closed by the next change
	closed   bool
	headless bool // it has no leader and changes nothing

	keys     map[string]*pair
	graves   map[string]uint64    // deleted keys, and the index at which they were
	kvIndex  uint64               // of the last change of any key
	delays   map[string]time.Time // until when a key cannot be locked
	sessions map[string]*session
	sessIdx  uint64
	nodes    map[string]*node
	catIdx   uint64
}

// New makes a Server with one node, which is its own.
func New(cfg Config) *Server {
	if cfg.MinTTL <= 0 {
		cfg.MinTTL = 10 * time.Second
	}
	s := &Server{
		cfg: cfg, index: 10, changed: make(chan struct{}), keys: map[string]*pair{}, graves: map[string]uint64{},
		delays: map[string]time.Time{}, sessions: map[string]*session{}, nodes: map[string]*node{},
	}
	s.nodes[self] = &node{ID: newID(), Node: self, Address: "127.0.0.1", Datacenter: datacenter, CreateIndex: 10, ModifyIndex: 10, services: map[string]*service{}}
	s.kvIndex, s.sessIdx, s.catIdx = 10, 10, 10
	return s
}

const (
	self       = "consul-1" // the agent's own node
	datacenter = "dc1"
)

// Listen serves at a free loopback port and returns the address, as in
// "127.0.0.1:1234". The caller calls stop.
func (s *Server) Listen() (address string, stop func()) {
	h := httptest.NewServer(s)
	return strings.TrimPrefix(h.URL, "http://"), func() {
		s.Close()
		h.CloseClientConnections()
		h.Close()
	}
}

// Close ends every wait and every timer.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	for _, x := range s.sessions {
		x.stop()
	}
	close(s.changed)
}

// Headless takes the leader away, or brings it back: without one everything is
// answered with status 500, as Consul does.
func (s *Server) Headless(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headless = on
}

// bump counts a change and wakes who waits for one. The caller holds mu.
func (s *Server) bump(table *uint64) uint64 {
	s.index++
	*table = s.index
	if !s.closed {
		close(s.changed)
		s.changed = make(chan struct{})
	}
	return s.index
}

// failure is an answer with another status than 200.
type failure struct {
	status int
	text   string
}

func (f failure) Error() string { return f.text }

func fail(status int, format string, args ...any) error {
	return failure{status, fmt.Sprintf(format, args...)}
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if err := s.admit(req); err != nil {
		answerError(w, err)
		return
	}
	path := req.URL.Path
	switch {
	case strings.HasPrefix(path, "/v1/kv/"):
		s.serveKV(w, req, strings.TrimPrefix(path, "/v1/kv/"))
	case path == "/v1/txn":
		s.serveTxn(w, req)
	case strings.HasPrefix(path, "/v1/session/"):
		s.serveSession(w, req, strings.TrimPrefix(path, "/v1/session/"))
	case strings.HasPrefix(path, "/v1/catalog/"):
		s.serveCatalog(w, req, strings.TrimPrefix(path, "/v1/catalog/"))
	case path == "/v1/status/leader":
		answer(w, "127.0.0.1:8300")
	default:
		answerError(w, fail(http.StatusNotFound, "Invalid URL path: not a recognized HTTP API endpoint"))
	}
}

func (s *Server) admit(req *http.Request) error {
	s.mu.Lock()
	headless := s.headless
	s.mu.Unlock()
	token := req.Header.Get("X-Consul-Token")
	switch {
	case headless:
		return fail(http.StatusInternalServerError, "No cluster leader")
	case s.cfg.Token == "" || token == s.cfg.Token:
		return nil
	case token == "":
		return fail(http.StatusForbidden, "Permission denied: anonymous token lacks permission")
	}
	return fail(http.StatusForbidden, "ACL not found")
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who has gone gets no answer
}

func answerError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if f, ok := err.(failure); ok { //nolint:errorlint // never wrapped
		status = f.status
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(err.Error())) // who has gone gets no answer
}

// method refuses another one than is wanted.
func method(w http.ResponseWriter, req *http.Request, want string) bool {
	if req.Method == want {
		return true
	}
	w.Header().Set("Allow", want)
	answerError(w, fail(http.StatusMethodNotAllowed, "method %s not allowed", req.Method))
	return false
}

// query answers at once, or where an index is given when what is asked for has
// changed, or the wait is over. read returns the answer and its index; it is called
// with mu held.
func (s *Server) query(w http.ResponseWriter, req *http.Request, read func() (any, uint64)) {
	after, err := strconv.ParseUint(orZero(req.URL.Query().Get("index")), 10, 64)
	if err != nil {
		answerError(w, fail(http.StatusBadRequest, "Invalid index"))
		return
	}
	wait := 5 * time.Minute
	if text := req.URL.Query().Get("wait"); text != "" {
		if wait, err = time.ParseDuration(text); err != nil {
			answerError(w, fail(http.StatusBadRequest, "Invalid wait time"))
			return
		}
	}
	wait = min(wait, 10*time.Minute)
	timeout := time.NewTimer(wait + wait/16)
	defer timeout.Stop()
	for {
		s.mu.Lock()
		out, index := read()
		changed, over := s.changed, s.closed
		s.mu.Unlock()
		if after == 0 || index > after || over {
			s.answerIndexed(w, out, index)
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			s.answerIndexed(w, out, index)
			return
		case <-req.Context().Done():
			return
		}
	}
}

func (s *Server) answerIndexed(w http.ResponseWriter, out any, index uint64) {
	h := w.Header()
	h.Set("X-Consul-Index", strconv.FormatUint(max(index, 1), 10)) // never 0: clients would not block
	h.Set("X-Consul-Knownleader", "true")
	h.Set("X-Consul-Lastcontact", "0")
	switch v := out.(type) {
	case nil:
		w.WriteHeader(http.StatusNotFound)
	case []byte:
		h.Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(v) // who has gone gets no answer
	default:
		answer(w, v)
	}
}

func orZero(s string) string {
	if s == "" {
		return "0"
	}
	return s
}
