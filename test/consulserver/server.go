package consulserver

import (
	"encoding/json"
	"errors"
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
	// MinTTL is the shortest time to live of a session; 0 = 10 s, as in Consul.
	MinTTL time.Duration
}

// Server is a Consul of one agent. Use New.
type Server struct {
	cfg Config

	mu       sync.Mutex
	index    uint64 // of the last change
	closed   bool
	headless bool // it has no leader and answers nothing

	keys     map[string]pair
	delays   map[string]time.Time // until when a key cannot be locked
	sessions map[string]*session
	services []service
}

// New makes an empty Server.
func New(cfg Config) *Server {
	if cfg.MinTTL <= 0 {
		cfg.MinTTL = 10 * time.Second
	}
	return &Server{cfg: cfg, index: 10, keys: map[string]pair{}, delays: map[string]time.Time{}, sessions: map[string]*session{}}
}

// Listen serves at a free loopback port and returns the address, as in "127.0.0.1:1234".
// The caller calls stop.
func (s *Server) Listen() (address string, stop func()) {
	h := httptest.NewServer(s)
	return strings.TrimPrefix(h.URL, "http://"), func() {
		s.Close()
		h.CloseClientConnections()
		h.Close()
	}
}

// Close ends every timer.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, x := range s.sessions {
		x.stop()
	}
}

// Headless takes the leader away, or brings it back: without one Consul answers everything
// with status 500.
func (s *Server) Headless(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.headless = on
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
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := s.serve(req)
	w.Header().Set("X-Consul-Index", strconv.FormatUint(s.index, 10))
	w.Header().Set("X-Consul-Knownleader", "true")
	w.Header().Set("X-Consul-Lastcontact", "0")
	if f, ok := errors.AsType[failure](err); ok {
		w.WriteHeader(f.status)
		_, _ = w.Write([]byte(f.text)) // the client may be gone
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if faults, ok := out.(txnErrors); ok && len(faults.Errors) > 0 {
		w.WriteHeader(http.StatusConflict)
	}
	_ = json.NewEncoder(w).Encode(out) // the client may be gone
}

// serve answers one request. The caller holds mu.
func (s *Server) serve(req *http.Request) (any, error) {
	token := req.Header.Get("X-Consul-Token")
	switch {
	case s.headless:
		return nil, fail(http.StatusInternalServerError, "No cluster leader")
	case s.cfg.Token != "" && token == "":
		return nil, fail(http.StatusForbidden, "Permission denied: anonymous token lacks permission")
	case s.cfg.Token != "" && token != s.cfg.Token:
		return nil, fail(http.StatusForbidden, "ACL not found")
	}
	for _, route := range []struct {
		method, prefix string
		serve          func(req *http.Request, rest string) (any, error)
	}{
		{http.MethodGet, "/v1/kv/", s.getKey},
		{http.MethodPut, "/v1/kv/", s.lockKey},
		{http.MethodDelete, "/v1/kv/", s.deleteKey},
		{http.MethodPut, "/v1/txn", s.transact},
		{http.MethodPut, "/v1/session/create", s.createSession},
		{http.MethodPut, "/v1/session/renew/", s.renewSession},
		{http.MethodPut, "/v1/session/destroy/", s.destroySession},
		{http.MethodPut, "/v1/catalog/register", s.register},
		{http.MethodGet, "/v1/catalog/service/", s.find},
	} {
		if rest, ok := strings.CutPrefix(req.URL.Path, route.prefix); ok && req.Method == route.method {
			return route.serve(req, rest)
		}
	}
	return nil, fail(http.StatusNotFound, "Invalid URL path: not a recognized HTTP API endpoint")
}

// service is one as the catalog shows it.
type service struct {
	Node           string
	Address        string // of the node
	ServiceID      string
	ServiceName    string
	ServiceAddress string // empty: that of the node
	ServicePort    int
	CreateIndex    uint64
}

// register adds a service.
func (s *Server) register(req *http.Request, _ string) (any, error) {
	var in struct {
		Node, Address string
		Service       struct {
			ID, Service, Address string
			Port                 int
		}
	}
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil || in.Node == "" || in.Address == "" {
		return nil, fail(http.StatusBadRequest, "Must provide node and address")
	}
	s.index++
	s.services = append(s.services, service{
		in.Node, in.Address, in.Service.ID, in.Service.Service, in.Service.Address, in.Service.Port, s.index,
	})
	return true, nil
}

func (s *Server) find(_ *http.Request, name string) (any, error) {
	out := []service{}
	for _, x := range s.services {
		if x.ServiceName == name {
			out = append(out, x)
		}
	}
	return out, nil
}
