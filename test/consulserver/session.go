package consulserver

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	maxTTL       = 24 * time.Hour
	maxDelay     = time.Minute
	defaultDelay = 15 * time.Second
	// grace is how many times its time to live a session lives on.
	grace = 2
)

// session is one as Consul shows it.
type session struct {
	ID            string
	Name          string
	Node          string
	LockDelay     time.Duration
	Behavior      string
	TTL           string
	NodeChecks    []string
	ServiceChecks []string
	CreateIndex   uint64
	ModifyIndex   uint64

	ttl   time.Duration
	timer *time.Timer // nil: it has no time to live
}

func (x *session) stop() {
	if x.timer != nil {
		x.timer.Stop()
	}
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (s *Server) serveSession(w http.ResponseWriter, req *http.Request, path string) {
	verb, id, _ := strings.Cut(path, "/")
	switch verb {
	case "create":
		if !method(w, req, http.MethodPut) {
			return
		}
		id, err := s.create(req.Body)
		if err != nil {
			answerError(w, err)
			return
		}
		answer(w, map[string]string{"ID": id})
	case "destroy":
		if !method(w, req, http.MethodPut) {
			return
		}
		s.mu.Lock()
		s.invalidate(id)
		s.mu.Unlock()
		answer(w, true) // also where there was none
	case "renew":
		if !method(w, req, http.MethodPut) {
			return
		}
		x, ok := s.renew(id)
		if !ok {
			answerError(w, fail(http.StatusNotFound, "Session id '%s' not found", id))
			return
		}
		answer(w, []session{x})
	case "info", "list", "node":
		if !method(w, req, http.MethodGet) {
			return
		}
		s.query(w, req, func() (any, uint64) {
			out := []session{}
			for _, key := range slices.Sorted(maps.Keys(s.sessions)) {
				x := s.sessions[key]
				if verb == "list" || verb == "info" && x.ID == id || verb == "node" && x.Node == id {
					out = append(out, *x)
				}
			}
			return out, s.sessIdx
		})
	default:
		answerError(w, fail(http.StatusNotFound, "Invalid URL path: not a recognized HTTP API endpoint"))
	}
}

func (s *Server) create(body io.Reader) (string, error) {
	var in struct {
		Name, Node, Behavior, TTL string
		LockDelay                 json.RawMessage
		NodeChecks                []string
	}
	if err := json.NewDecoder(body).Decode(&in); err != nil && !errors.Is(err, io.EOF) {
		return "", fail(http.StatusBadRequest, "Request decode failed: %v", err)
	}
	x := &session{
		ID: newID(), Name: in.Name, Node: in.Node, Behavior: in.Behavior, TTL: in.TTL, NodeChecks: in.NodeChecks, LockDelay: defaultDelay,
	}
	if x.NodeChecks == nil {
		x.NodeChecks = []string{"serfHealth"}
	}
	if x.Node == "" {
		x.Node = self
	}
	if x.Behavior == "" {
		x.Behavior = "release"
	}
	if x.Behavior != "release" && x.Behavior != "delete" {
		return "", fail(http.StatusInternalServerError, "Invalid Behavior setting '%s'", x.Behavior)
	}
	if len(in.LockDelay) > 0 {
		d, err := duration(in.LockDelay)
		if err != nil {
			return "", fail(http.StatusBadRequest, "Request decode failed: %v", err)
		}
		x.LockDelay = min(d, maxDelay)
	}
	if in.TTL != "" {
		ttl, err := time.ParseDuration(in.TTL)
		if err != nil {
			return "", fail(http.StatusInternalServerError, "Session TTL '%s' invalid: %v", in.TTL, err)
		}
		if ttl != 0 && (ttl < s.cfg.MinTTL || ttl > maxTTL) {
			return "", fail(http.StatusInternalServerError, "Invalid Session TTL '%d', must be between [%v=%v]", ttl, s.cfg.MinTTL, maxTTL)
		}
		x.ttl = ttl
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[x.Node] == nil {
		return "", fail(http.StatusInternalServerError, "Missing node registration")
	}
	x.CreateIndex = s.bump(&s.sessIdx)
	x.ModifyIndex = x.CreateIndex
	if x.ttl > 0 && !s.closed {
		x.timer = time.AfterFunc(grace*x.ttl, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.closed {
				s.invalidate(x.ID)
			}
		})
	}
	s.sessions[x.ID] = x
	return x.ID, nil
}

// duration reads "15s", a number of seconds below 1000, or one of nanoseconds.
func duration(raw json.RawMessage) (time.Duration, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		return time.ParseDuration(text)
	}
	var n float64
	if err := json.Unmarshal(raw, &n); err != nil {
		return 0, err
	}
	if n < 1000 {
		n *= float64(time.Second)
	}
	return time.Duration(n), nil
}

func (s *Server) renew(id string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[id]
	if x == nil {
		return session{}, false
	}
	if x.timer != nil && !s.closed {
		x.timer.Reset(grace * x.ttl)
	}
	return *x, true
}

// invalidate ends a session: its locks are released, or their keys deleted, and
// cannot be taken before the lock delay has passed. The caller holds mu.
func (s *Server) invalidate(id string) {
	x := s.sessions[id]
	if x == nil {
		return
	}
	x.stop()
	delete(s.sessions, id)
	s.bump(&s.sessIdx)
	for _, key := range slices.Sorted(maps.Keys(s.keys)) {
		p := s.keys[key]
		if p.Session != id {
			continue
		}
		if x.LockDelay > 0 {
			s.delays[key] = time.Now().Add(x.LockDelay)
		}
		if x.Behavior == "delete" {
			s.remove(key)
			continue
		}
		s.set(key, p.Value, p.Flags).Session = ""
	}
}
