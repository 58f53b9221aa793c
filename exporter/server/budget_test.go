package server_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs/certstest"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/server"
	"pitchpipe/exporter/window"
)

// Each says what a job of user 1000 may use, after the controller said 100 J.
func TestForgedBudgetsAreRefusedOrCanOnlyLower(t *testing.T) {
	t.Parallel()
	const owner, stranger, reader = 1000, 1001, 61001
	said := api.Budget{Joules: 100, By: api.ByController}
	for _, tc := range []struct {
		name   string
		uid    uint32
		path   string
		body   string
		status int
		want   api.Budget
	}{
		{"the owner lowers it", owner, "slurm%2F42", "joules=50", http.StatusNoContent, api.Budget{Joules: 50, By: api.ByOwner}},
		{"the owner cannot raise it", owner, "42", "joules=500", http.StatusNoContent, said},
		{"the owner cannot take it away", owner, "42", "joules=0", http.StatusNoContent, said},
		{"the owner cannot be somebody else", owner, "42", `{"joules":500,"by":"administrator"}`, http.StatusNoContent, said},
		{"the owner cannot let modelled joules count", owner, "42", "joules=100 counts=modelled", http.StatusNoContent, said},
		{"another user does not even learn of the job", stranger, "slurm%2F42", "joules=5", http.StatusNotFound, said},
		{"a reader changes what the controller said", reader, "42", "joules=200", http.StatusNoContent, api.Budget{Joules: 200, By: api.ByController}},
		{"root too", 0, "42", "joules=300 seconds=7", http.StatusNoContent, api.Budget{Joules: 300, Seconds: 7, By: api.ByController}},
		{"root takes it away", 0, "42", "joules=0", http.StatusNoContent, api.Budget{}},
		{"no number", 0, "42", "joules=many", http.StatusBadRequest, said},
		{"a page of them", 0, "42", strings.Repeat("joules=1 ", 1000), http.StatusRequestEntityTooLarge, said},
		{"another attempt", 0, "42?attempt=7", "joules=1", http.StatusNotFound, said},
		{"no attempt", 0, "42?attempt=first", "joules=1", http.StatusBadRequest, said},
		{"a job that has ended", owner, "41", "joules=1", http.StatusNotFound, said},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			store := window.New(window.Config{})
			key := attrib.Key{Manager: attrib.Slurm, ID: "42", Attempt: 1}
			over := attrib.Key{Manager: attrib.Slurm, ID: "41", Attempt: 1}
			for _, k := range []attrib.Key{key, over} {
				if err := store.Begin(window.Attempt{Job: api.Job{Manager: k.Manager, ID: k.ID, Attempt: 1, UID: owner}, Schema: api.SchemaAccounting, Source: "rapl"}); err != nil {
					t.Fatal(err)
				}
			}
			store.End(over, time.Unix(9, 0), nil)
			store.Allow(key, api.ByController, api.Budget{Joules: 100})
			s, err := server.New(server.Config{Socket: filepath.Join(t.TempDir(), "s"), Readers: []uint32{reader}}, static(api.Node{}), store, &marker{}, http.NotFoundHandler())
			if err != nil {
				t.Fatal(err)
			}
			id, query, _ := strings.Cut(tc.path, "?")
			url := "/v1/jobs/" + id + "/budget?" + query
			rec := httptest.NewRecorder()
			s.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(s.As(t.Context(), tc.uid), http.MethodPut, url, strings.NewReader(tc.body)))
			if rec.Code != tc.status || tc.status == http.StatusBadRequest && !strings.Contains(rec.Body.String(), query) {
				t.Errorf("status %d, want %d: %s", rec.Code, tc.status, rec.Body)
			}
			var got api.Budget
			if job, _ := store.Find("slurm/42", 1, func(api.Job) bool { return true }); job.Budget != nil {
				got = *job.Budget
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("budget (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAControllerSetsABudgetOverTLSAndOnTheSocket(t *testing.T) {
	t.Parallel()
	s := newSite(t, node())
	stranger := s.client(t, s.ca.Files(t, certstest.Leaf{Name: "stranger", Client: true}, s.ca))
	if err := stranger.SetBudget(t.Context(), "local/theirs", 1, api.Budget{Joules: 5}); !errors.Is(err, api.ErrDenied) {
		t.Errorf("a stranger: %v, want %v", err, api.ErrDenied)
	}
	over := map[string]*api.Client{"TLS": s.client(t, s.ca.Files(t, controller(), s.ca))}
	if os.Getuid() == 0 {
		over["the socket"] = start(t, fill(t), &marker{})
	}
	for name, c := range over {
		if err := c.SetBudget(t.Context(), "local/theirs", 1, api.Budget{Joules: 50, Used: 4, Seconds: 9}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		w, err := c.Window(t.Context(), "local/theirs", 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&api.Budget{Joules: 50, Used: 4, Seconds: 9, By: api.ByController}, w.Job.Budget); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err := c.SetBudget(t.Context(), "local/none", 0, api.Budget{Joules: 5}); !errors.Is(err, api.ErrNotFound) {
			t.Errorf("%s: a job that is not there: %v", name, err)
		}
		if err := c.SetBudget(t.Context(), "local/theirs", 0, api.Budget{Joules: -5}); !errors.Is(err, api.ErrInvalid) {
			t.Errorf("%s: below nothing: %v", name, err)
		}
	}
}
