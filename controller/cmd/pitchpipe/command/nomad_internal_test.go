package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/controller/config"
	"pitchpipe/driver"
	exporterapi "pitchpipe/exporter/api"
)

const secret = "5e7ec2e7-aaaa"

// asked is a Nomad agent that tells which tokens it was shown.
func asked(t *testing.T, l net.Listener) (address string, tokens func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Get("X-Nomad-Token"))
		mu.Unlock()
		_, _ = io.WriteString(w, "[]")
	}))
	if l != nil {
		_ = s.Listener.Close()
		s.Listener = l
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), seen...)
	}
}

func file(t *testing.T, dir, name, text string, mode os.FileMode, at time.Time) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode), os.Chtimes(path, at, at)); err != nil {
		t.Fatal(err)
	}
	return path
}

func configured(environ []string, n config.Nomad) *app {
	return &app{World: World{Environ: environ}, cfg: config.Config{Nomad: n}}
}

func list(t *testing.T, c *api.Client) {
	t.Helper()
	if _, _, err := c.Jobs().List(nil); err != nil {
		t.Fatal(err)
	}
}

func TestWhereTheTokenComesFrom(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		name, want string
		environ    []string
		identity   bool
		file       bool
	}{
		{name: "from nowhere", want: ""},
		{name: "from the environment", environ: []string{"NOMAD_TOKEN=env"}, want: "env"},
		{name: "from a file, which overrides the environment", environ: []string{"NOMAD_TOKEN=env"}, file: true, want: secret},
		{name: "from the task's identity", identity: true, want: "identity"},
		{name: "from the task's identity, whose first state is in the environment", environ: []string{"NOMAD_TOKEN=eyJold"}, identity: true, want: "identity"},
		{name: "from the environment of a task that was given another", environ: []string{"NOMAD_TOKEN=env"}, identity: true, want: "env"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			address, tokens := asked(t, nil)
			dir, n := t.TempDir(), config.Nomad{Address: address}
			if tt.identity {
				file(t, dir, "nomad_token", "identity", 0o644, now)
				tt.environ = append(tt.environ, "NOMAD_SECRETS_DIR="+dir)
			}
			if tt.file {
				n.TokenFile = file(t, dir, "token", secret+"\n", 0o600, now)
			}
			c, err := configured(tt.environ, n).nomadClient(slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			list(t, c)
			if diff := cmp.Diff([]string{tt.want}, tokens()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestATokenThatWasRenewedIsUsedAndNeverLogged(t *testing.T) {
	t.Parallel()
	address, tokens := asked(t, nil)
	dir, began := t.TempDir(), time.Now()
	path := file(t, dir, "token", secret+"1", 0o600, began)
	var log bytes.Buffer
	c, err := configured(nil, config.Nomad{Address: address, TokenFile: path}).nomadClient(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list(t, c)
	file(t, dir, "token", secret+"2", 0o600, began.Add(time.Second))
	list(t, c)
	file(t, dir, "token", secret+"3", 0o644, began.Add(2*time.Second)) // for everybody to read
	list(t, c)
	if diff := cmp.Diff([]string{secret + "1", secret + "2", secret + "2"}, tokens()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if said := log.String(); !strings.Contains(said, "0644") || strings.Contains(said, secret) {
		t.Errorf("the operator reads\n%s", said)
	}
}

func TestWhatWouldGiveTheTokenAwayIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := file(t, dir, "open", secret, 0o644, time.Now())
	good := file(t, dir, "good", secret, 0o600, time.Now())
	for _, tt := range []struct {
		name, want string
		environ    []string
		n          config.Nomad
	}{
		{"a file for everybody", "has mode 0644", nil, config.Nomad{TokenFile: open}},
		{"a file that is not there", "no such file", nil, config.Nomad{TokenFile: filepath.Join(dir, "absent")}},
		{"http to another machine", "everybody on the way could read the token; want https://", nil, config.Nomad{Address: "http://192.0.2.1:4646", TokenFile: good}},
		{"http to another machine by the environment", "want https://", []string{"NOMAD_ADDR=http://192.0.2.1:4646", "NOMAD_TOKEN=" + secret}, config.Nomad{}},
		{"a certificate that is not there", "absent", nil, config.Nomad{Address: "https://127.0.0.1:1", CA: filepath.Join(dir, "absent")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := configured(tt.environ, tt.n).nomadClient(slog.New(slog.DiscardHandler))
			if err == nil {
				c.Close()
			}
			if !errors.Is(err, errInvalid) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestATaskReachesItsAgentByASocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "api.sock")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	_, tokens := asked(t, l)
	c, err := configured([]string{"NOMAD_TOKEN=" + secret}, config.Nomad{Address: "unix://" + path}).nomadClient(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	list(t, c)
	if diff := cmp.Diff([]string{secret}, tokens()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// told remembers reports.
type told struct {
	at      []string
	reports []exporterapi.Report
}

func (f *told) Report(_ context.Context, node, job string, attempt int, r exporterapi.Report) error {
	if r.Begins {
		return nil
	}
	if attempt == 1 {
		f.at = append(f.at, node+" "+job)
	}
	f.reports = append(f.reports, r)
	return nil
}

func TestTheEpochsOfAnAllocationAreReportedToTheExporterOfItsNode(t *testing.T) {
	t.Parallel()
	to := &told{}
	listen := listener(to.Report, slog.New(slog.DiscardHandler))
	p := driver.Progress{Pattern: `epoch (?P<epoch>\d+) loss (?P<loss>\S+)`, Total: 9}
	if err := listen(t.Context(), "n1", "alloc.task", p, strings.NewReader("hello\nepoch 1 loss 0.5\nepoch 2 loss 0.25\nepoch 3")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"n1 nomad/alloc.task", "n1 nomad/alloc.task"}, to.at); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r := to.reports; len(r) != 2 || r[1].Epoch != 2 || r[1].Total != 9 || *r[1].Loss != 0.25 {
		t.Errorf("reports %+v", r)
	}
	for _, pattern := range []string{"(", "no epoch"} {
		if err := listen(t.Context(), "n1", "u", driver.Progress{Pattern: pattern}, strings.NewReader("")); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("pattern %q: %v", pattern, err)
		}
	}
}
