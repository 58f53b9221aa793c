package pair_test

import (
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/hashicorp/nomad/api"
)

// way is a controller's way to Nomad, the one it has: its store and its driver take it.
type way struct {
	mu     sync.Mutex
	cut    bool
	behind func(*http.Request) bool
	kills  bool
	struck func()
	asked  []*http.Request
}

// strike does something after the first request of a kind and before its answer.
// Where it kills nothing comes through any more, the answer neither.
func (w *way) strike(behind func(*http.Request) bool, kills bool, do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.behind, w.kills, w.struck = behind, kills, do
}

// count is how often something was asked.
func (w *way) count(is func(*http.Request) bool) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.asked {
		if is(r) {
			n++
		}
	}
	return n
}

// client goes this way to the agent of another client.
func (w *way) client(t *testing.T, to *api.Client) *api.Client {
	t.Helper()
	target, err := url.Parse(to.Address())
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.FlushInterval = -1
	forward.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // who asked may be gone
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		cut, do, kills := w.cut, w.struck, w.kills
		hit := do != nil && w.behind(r)
		if hit {
			w.struck = nil
		}
		w.asked = append(w.asked, r)
		w.mu.Unlock()
		switch {
		case cut:
			panic(http.ErrAbortHandler)
		case !hit:
			forward.ServeHTTP(out, r)
			return
		}
		answer := httptest.NewRecorder()
		forward.ServeHTTP(answer, r)
		if kills {
			w.mu.Lock()
			w.cut = true
			w.mu.Unlock()
		}
		if do(); kills {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(out.Header(), answer.Header())
		out.WriteHeader(answer.Code)
		_, _ = out.Write(answer.Body.Bytes()) // who asked may be gone
	}))
	t.Cleanup(server.Close)
	c, err := api.NewClient(&api.Config{Address: server.URL, HttpClient: server.Client()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
