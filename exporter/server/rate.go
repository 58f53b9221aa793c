package server

import (
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

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
	users map[peercred.Share]*userRate
	swept time.Time
}

type userRate struct {
	questions, reports *rate.Limiter
	asked              time.Time
}

func (r *rates) allow(who peercred.Share, report bool, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now.Sub(r.swept) >= rateIdle {
		r.swept = now
		maps.DeleteFunc(r.users, func(_ peercred.Share, u *userRate) bool { return now.Sub(u.asked) > rateIdle })
	}
	u := r.users[who]
	if u == nil {
		u = &userRate{questions: rate.NewLimiter(questionsPerSecond, questionsAtOnce), reports: rate.NewLimiter(reportsPerSecond, reportsAtOnce)}
		r.users[who] = u
	}
	u.asked = now
	if report {
		return u.reports.AllowN(now, 1)
	}
	return u.questions.AllowN(now, 1)
}

// rated answers those who ask too often with 429. Who is not known counts as one user.
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
