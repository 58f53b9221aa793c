package server

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
)

type peer struct {
	peercred.Caller
	all bool  // the caller may see the jobs of all users
	err error // why the caller is unknown
}

func (p peer) sees(j api.Job) bool { return p.all || p.UID == j.UID }

type peerKey struct{}

// privileged reports whether a user may see the jobs of all users.
func (s *Server) privileged(uid uint32) bool { return uid == 0 || slices.Contains(s.cfg.Readers, uid) }

func (s *Server) peer(c peercred.Caller, err error) peer {
	return peer{Caller: c, all: err == nil && s.privileged(c.UID), err: err}
}

// withPeer keeps who opened a connection, which the kernel said when it was accepted.
func (s *Server) withPeer(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, peerKey{}, s.peer(peercred.Of(c)))
}

func peerOf(ctx context.Context) peer {
	p, ok := ctx.Value(peerKey{}).(peer)
	if !ok {
		return peer{Caller: peercred.Caller{UID: peercred.Nobody}, err: errors.New("no peer credentials")}
	}
	return p
}

func (s *Server) fair(l net.Listener) *peercred.Listener {
	refused := &peercred.Complaints{Log: s.log}
	return &peercred.Listener{
		Listener: l, Known: s.privileged,
		Room: peercred.Room{All: 768, Strangers: 512, Each: 128, Own: 8}, // root and the readers are never kept out
		Owns: func(uid uint32) bool {
			return len(s.store.Jobs(func(j api.Job) bool { return !j.Ended && j.UID == uid })) > 0
		},
		Full: func(c peercred.Caller) { refused.Add(c.String(), errCrowd) },
	}
}

var errCrowd = errors.New("too many connections at a time")

// What one user may ask in a second, all processes and subordinate uids together, and how much at once
// after he asked nothing for a while. An answer about a job that ran for long is
// megabytes; a report is small, and a job of many processes may send many at a time.
// Root and the readers may ask any number.
const (
	questionsPerSecond, questionsAtOnce = 50, 200
	reportsPerSecond, reportsAtOnce     = 500, 2000
	// Users who have asked nothing for a while are forgotten this often.
	forgetEvery = time.Minute
)

var errRate = errors.New("too many requests of one user; try again in a second")

// rates hold how much each user has asked lately.
type rates struct {
	mu    sync.Mutex
	users map[asker]*rate.Limiter
	swept time.Time
}

// asker is a user who asks questions, or who reports.
type asker struct {
	peercred.Share
	reports bool
}

func (r *rates) allow(who peercred.Share, report bool, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.swept) >= forgetEvery {
		r.swept = now
		maps.DeleteFunc(r.users, func(_ asker, l *rate.Limiter) bool { return l.TokensAt(now) >= float64(l.Burst()) })
	}
	key := asker{who, report}
	if r.users[key] == nil {
		r.users[key] = rate.NewLimiter(questionsPerSecond, questionsAtOnce)
		if report {
			r.users[key] = rate.NewLimiter(reportsPerSecond, reportsAtOnce)
		}
	}
	return r.users[key].AllowN(now, 1)
}

// rated answers those who ask too often with 429. Unknown callers count as one user.
func (s *Server) rated(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := peerOf(r.Context())
		if !p.all && !s.rates.allow(p.Share, r.Method == http.MethodPost, time.Now()) {
			w.Header().Set("Retry-After", "1")
			s.refuse(w, problem{http.StatusTooManyRequests, errRate})
			return
		}
		h.ServeHTTP(w, r)
	})
}
