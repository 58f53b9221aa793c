package server_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred/peercredtest"
	"pitchpipe/exporter/server"
)

func TestReadersSeeTheJobsOfEverybody(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("to be another user needs root")
	}
	const reader, stranger = 61001, 61002
	dir := peercredtest.Dir(t)
	socket := filepath.Join(dir, "s")
	m := serveOn(t, socket, server.Config{Readers: []uint32{reader}})
	for _, tc := range []struct {
		name string
		uid  uint32
		want string // jobs in the list, and the status of each question
	}{
		{"a reader", reader, "2 jobs: 200 200 204"},
		{"a user who has a job", uint32(os.Getuid()) + 1, "1 jobs: 404 200 403"},
		{"a user without jobs", stranger, "0 jobs: 404 404 403"},
	} {
		got := ""
		peercredtest.As(t, tc.uid, func() {
			_, text, err := peercredtest.Ask("unix", socket, http.MethodGet, api.PathJobs, "", time.Minute)
			got = fmt.Sprintf("%d jobs:", strings.Count(text, `"id":`))
			for _, q := range []string{"GET /v1/jobs/mine/window", "GET /v1/jobs/theirs/window", "POST /v1/jobs/local%2Ftheirs/progress"} {
				method, path, _ := strings.Cut(q, " ")
				status, _, failed := peercredtest.Ask("unix", socket, method, path, "epoch=1", time.Minute)
				err, got = errors.Join(err, failed), got+fmt.Sprint(" ", status)
			}
			if err != nil {
				t.Error(err)
			}
		})
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	if diff := cmp.Diff([]string{"local/theirs 0"}, m.on); diff != "" {
		t.Errorf("reported on behalf of (-want +got):\n%s", diff)
	}
}

// serveOn runs a server with the jobs of two users until the test ends.
func serveOn(t *testing.T, socket string, cfg server.Config) *marker {
	t.Helper()
	cfg.Socket = socket
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics\n") })
	m := &marker{}
	s, err := server.New(cfg, static(api.Node{Hostname: "n1", Cores: 2}), fill(t), m, metrics)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, s.Run)
	until(t, "the server listens", func() bool {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "unix", socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return m
}

// A caller who may see everything gets the same answers whichever way he comes.
func TestTheSocketAndTLSAnswerAlike(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("on the socket only root sees everything")
	}
	s := newSite(t, node())
	over := map[string]*api.Client{
		"the socket": start(t, fill(t), &marker{}),
		"TLS":        s.client(t, s.ca.Files(t, controller(), s.ca)),
	}
	for name, c := range over {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			about, err := c.Node(t.Context())
			if err != nil || about.Hostname != "n1" || about.Cores != 2 {
				t.Errorf("node %+v, %v", about, err)
			}
			jobs, err := c.Jobs(t.Context())
			if err != nil || len(jobs) != 2 || jobs[0].ID != "mine" || jobs[1].ID != "theirs" {
				t.Errorf("jobs %+v, %v", jobs, err)
			}
			for _, tc := range []struct {
				job     string
				attempt int
				after   uint64
				samples int
				want    error
			}{
				{"mine", 1, 0, 1, nil},
				{"theirs", 1, 0, 1, nil},
				{"local/theirs", 0, 0, 1, nil},
				{"local/theirs", 1, 1, 0, nil},
				{"local/theirs", 1, ^uint64(0), 0, nil},
				{"theirs", 2, 0, 0, api.ErrNotFound},
				{"slurm/theirs", 1, 0, 0, api.ErrNotFound},
				{"a b/../c", 1, 0, 0, api.ErrNotFound},
				{"", 1, 0, 0, api.ErrNotFound},
				{strings.Repeat("x", 32<<10), 1, 0, 0, api.ErrUnavailable}, // longer than a header may be
			} {
				w, err := c.Window(t.Context(), tc.job, tc.attempt, tc.after)
				if !errors.Is(err, tc.want) || len(w.Samples) != tc.samples {
					t.Errorf("%.20q, attempt %d after %d: %d samples, %.300v; want %d, %v", tc.job, tc.attempt, tc.after, len(w.Samples), err, tc.samples, tc.want)
				}
			}
		})
	}
}
