package server

import (
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"pitchpipe/exporter/api/peercred"
)

// What one user may ask in a second, all processes and subordinate uids together, and how much at once
// after he asked nothing for a while. An answer about a job that ran for long is
// megabytes; a report is small, and a job of many processes may send many at a time.
// Root and the readers may ask any number.
const (
	questionsPerSecond, questionsAtOnce = 50, 200
	reportsPerSecond, reportsAtOnce     = 500, 2000
	// A user who asks nothing for so long is forgotten.
	rateIdle = time.Minute
)

var errRate = errors.New("too many requests of one user; try again in a second")

// rates hold how much each user has asked lately.
type rates struct {
	mu    sync.Mutex
	users map[peercred.Share]*rate
	swept time.Time
}

type rate struct {
	questions, reports allowance
}

// allowance grows with time up to a bound.
type allowance struct {
	left float64
	at   time.Time
}

func (a *allowance) take(now time.Time, perSecond, most float64) bool {
	if a.at.IsZero() {
		a.left = most
	}
	a.left = min(a.left+max(now.Sub(a.at).Seconds(), 0)*perSecond, most)
	a.at = now
	if a.left < 1 {
		return false
	}
	a.left--
	return true
}

func (r *rates) allow(who peercred.Share, report bool, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.swept) >= rateIdle {
		r.swept = now
		idle := now.Add(-rateIdle)
		maps.DeleteFunc(r.users, func(_ peercred.Share, u *rate) bool { return u.questions.at.Before(idle) && u.reports.at.Before(idle) })
	}
	u := r.users[who]
	if u == nil {
		u = &rate{}
		r.users[who] = u
	}
	if report {
		return u.reports.take(now, reportsPerSecond, reportsAtOnce)
	}
	return u.questions.take(now, questionsPerSecond, questionsAtOnce)
}

// rated answers those who ask too often with 429. Who is not known counts as one user.
func (s *Server) rated(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := peerOf(r.Context()) // who is not known is the zero peer, and sees nothing
		if !p.all && !s.rates.allow(p.Share, r.Method == http.MethodPost, time.Now()) {
			w.Header().Set("Retry-After", "1")
			s.refuse(w, problem{http.StatusTooManyRequests, errRate})
			return
		}
		h.ServeHTTP(w, r)
	})
}
