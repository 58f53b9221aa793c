package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/server"
)

// With this variable the test binary asks the socket that it names for all jobs, and
// says which it saw.
const asking = "PITCHPIPE_TEST_ASK"

func ask(socket string) int {
	c := api.NewClient(socket)
	jobs, err := c.Jobs(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, j := range jobs {
		_, err := c.Window(context.Background(), j.ID, 1, 0)
		fmt.Println(j.ID, err == nil)
	}
	for _, id := range []string{"mine", "theirs"} {
		if !slices.ContainsFunc(jobs, func(j api.Job) bool { return j.ID == id }) {
			_, err := c.Window(context.Background(), id, 1, 0)
			fmt.Println(id, !errors.Is(err, api.ErrNotFound))
		}
	}
	err = c.ReportFor(context.Background(), "local/theirs", 1, api.Report{Epoch: 1})
	fmt.Println("reports", !errors.Is(err, api.ErrDenied))
	return 0
}

func TestReadersSeeTheJobsOfEverybody(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("to be another user needs root")
	}
	const reader, stranger = 61001, 61002
	dir, err := os.MkdirTemp("", "pitchpipe-*") //nolint:usetesting // others cannot enter the folder above a test's own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // others have to reach the socket
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	m := serveOn(t, socket, server.Config{Readers: []uint32{reader}})
	for _, tc := range []struct {
		name string
		uid  uint32
		want string
	}{
		{"a reader", reader, "mine true\ntheirs true\nreports true\n"},
		{"a user who has a job", uint32(os.Getuid()) + 1, "theirs true\nmine false\nreports false\n"},
		{"a user without jobs", stranger, "mine false\ntheirs false\nreports false\n"},
	} {
		c := exec.CommandContext(t.Context(), "/proc/self/exe")
		c.Env = append(os.Environ(), asking+"="+socket)
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: tc.uid, Gid: tc.uid}}
		var fault strings.Builder
		c.Stderr = &fault
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", tc.name, err, &fault)
		}
		if diff := cmp.Diff(tc.want, string(out)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if diff := cmp.Diff([]string{"local/theirs 1"}, m.on); diff != "" {
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
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
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
