package consulserver

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// lives is how many times its time to live a session lives on without a renewal.
const lives = 2

// session is one as Consul shows it.
type session struct {
	ID        string
	TTL       string
	LockDelay time.Duration
	Behavior  string

	ttl   time.Duration
	timer *time.Timer // nil: it has no time to live
}

func (x *session) stop() {
	if x.timer != nil {
		x.timer.Stop()
	}
}

// createSession makes a session without health checks.
func (s *Server) createSession(req *http.Request, _ string) (any, error) {
	var in struct{ TTL, LockDelay, Behavior string }
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		return nil, fail(http.StatusBadRequest, "Request decode failed: %v", err)
	}
	x := &session{ID: fmt.Sprintf("%s-0000-4000-8000-000000000000", rand.Text()[:8]), TTL: in.TTL, Behavior: in.Behavior, LockDelay: 15 * time.Second}
	var err error
	if in.LockDelay != "" {
		if x.LockDelay, err = time.ParseDuration(in.LockDelay); err != nil {
			return nil, fail(http.StatusBadRequest, "Request decode failed: %v", err)
		}
	}
	if in.TTL != "" {
		if x.ttl, err = time.ParseDuration(in.TTL); err != nil {
			return nil, fail(http.StatusInternalServerError, "Session TTL '%s' invalid: %v", in.TTL, err)
		}
		if x.ttl < s.cfg.MinTTL || x.ttl > 24*time.Hour {
			return nil, fail(http.StatusInternalServerError, "Invalid Session TTL '%d', must be between [%v=24h0m0s]", x.ttl, s.cfg.MinTTL)
		}
		if !s.closed {
			x.timer = time.AfterFunc(lives*x.ttl, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.end(x.ID)
			})
		}
	}
	s.index++
	s.sessions[x.ID] = x
	return map[string]string{"ID": x.ID}, nil
}

func (s *Server) renewSession(_ *http.Request, id string) (any, error) {
	x := s.sessions[id]
	if x == nil {
		return nil, fail(http.StatusNotFound, "Session id '%s' not found", id)
	}
	if x.timer != nil && !s.closed {
		x.timer.Reset(lives * x.ttl)
	}
	return []*session{x}, nil
}

func (s *Server) destroySession(_ *http.Request, id string) (any, error) {
	s.end(id)
	return true, nil // also where there was none
}

// end ends a session: it frees its keys, and delays their next locks.
func (s *Server) end(id string) {
	x := s.sessions[id]
	if x == nil {
		return
	}
	x.stop()
	delete(s.sessions, id)
	for key, p := range s.keys {
		if p.Session == id {
			s.delays[key] = time.Now().Add(x.LockDelay)
			p = s.set(key, p.Value)
			p.Session = ""
			s.keys[key] = p
		}
	}
}
