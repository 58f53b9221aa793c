package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/api/peercred/peercredtest"
	"pitchpipe/exporter/metrics"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/server"
)

func share(uid uint32) peercred.Share { return peercred.Share{UID: uid} }

func TestAUsersRequestsAreBoundedAndNoOneElses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		allow := server.NewRates()
		now := time.Unix(1e9, 0)
		for _, kind := range []struct {
			report            bool
			perSecond, atOnce int
		}{{false, server.QuestionsPerSecond, server.QuestionsAtOnce}, {true, server.ReportsPerSecond, server.ReportsAtOnce}} {
			seconds := rapid.IntRange(0, 5).Draw(t, "seconds")
			taken := 0
			for range seconds + 1 {
				for allow(share(1000), kind.report, now) {
					taken++
				}
				now = now.Add(time.Second)
			}
			if want := kind.atOnce + seconds*kind.perSecond; taken != want {
				t.Fatalf("%d requests in %d s, want %d", taken, seconds, want)
			}
			if !allow(share(1001), kind.report, now) {
				t.Fatal("another user is refused")
			}
			now = now.Add(time.Hour)
		}
	})
}

func TestWhoAsksTooOftenIsToldToComeAgain(t *testing.T) {
	t.Parallel()
	const reader, user = 61001, 61002
	for _, tc := range []struct {
		method, path, body string
		ok, most           int
	}{
		{http.MethodGet, api.PathJobs, "", http.StatusOK, server.QuestionsAtOnce},
		{http.MethodPost, api.PathProgress, "epoch=1", http.StatusNoContent, server.ReportsAtOnce},
	} {
		t.Run(tc.method, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, err := server.New(server.Config{Socket: "unused", Readers: []uint32{reader}}, static(api.Node{}), fill(t), &marker{}, http.NotFoundHandler())
				if err != nil {
					t.Fatal(err)
				}
				ask := func(uid uint32) *httptest.ResponseRecorder {
					rec := httptest.NewRecorder()
					s.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(s.As(t.Context(), uid), tc.method, tc.path, strings.NewReader(tc.body)))
					return rec
				}
				for range tc.most {
					if rec := ask(user); rec.Code != tc.ok {
						t.Fatalf("%d %s", rec.Code, rec.Body)
					}
				}
				if rec := ask(user); rec.Code != http.StatusTooManyRequests || rec.Header().Get("Retry-After") != "1" {
					t.Errorf("%d %s, want %d", rec.Code, rec.Body, http.StatusTooManyRequests)
				}
				for range tc.most + 1 {
					if rec := ask(reader); rec.Code != tc.ok {
						t.Fatalf("a reader: %d %s", rec.Code, rec.Body)
					}
				}
				time.Sleep(time.Second)
				if rec := ask(user); rec.Code != tc.ok {
					t.Errorf("a second later: %d %s", rec.Code, rec.Body)
				}
			})
		})
	}
}

func TestTheMetricsShowEachUserHisOwnJobs(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("to be another user needs root")
	}
	const reader, stranger = 61001, 61002
	for _, tc := range []struct {
		show string
		uid  uint32
		want string
	}{
		{"own", 0, "true true true "},
		{"own", reader, "true true true "},
		{"own", 1, "false true true "}, // whose job is theirs
		{"own", stranger, "false false true "},
		{"all", stranger, "true true true "},
	} {
		t.Run(fmt.Sprintf("%s for user %d", tc.show, tc.uid), func(t *testing.T) {
			t.Parallel()
			dir := peercredtest.Dir(t)
			store := fill(t)
			h := metrics.Handler(metrics.Config{
				Node: func() api.Node { return api.Node{Cores: 2} }, Store: store, Snapshot: func() *sampler.Snapshot { return &sampler.Snapshot{} },
			})
			address := freeAddress(t)
			socket := filepath.Join(dir, "s")
			s, err := server.New(server.Config{Socket: socket, Metrics: address, Readers: []uint32{reader}, ShowJobs: tc.show == "all"}, static(api.Node{}), store, &marker{}, h)
			if err != nil {
				t.Fatal(err)
			}
			serve(t, s.Run)
			for network, at := range map[string]string{"tcp": address, "unix": socket} {
				var page string
				until(t, "the metrics come", func() (ok bool) {
					peercredtest.As(t, tc.uid, func() {
						status, text, err := peercredtest.Ask(network, at, http.MethodGet, "/metrics", "", 10*time.Second)
						page, ok = text, err == nil && status == http.StatusOK
					})
					return ok
				})
				got := ""
				for _, what := range []string{`job_id="mine"`, `job_id="theirs"`, "pitchpipe_node_cores"} {
					got += fmt.Sprint(strings.Contains(page, what), " ")
				}
				if got != tc.want {
					t.Errorf("%s: mine, theirs, node: %s, want %s", at, got, tc.want)
				}
			}
		})
	}
}
