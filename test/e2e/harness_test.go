package e2e_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/controller/daemon/api"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/test/sandbox"
)

// site has no control group: which jobs stay untuned would be a random draw.
const site = `default:
  max_mode: apply
  control: 0
`

// stage is one machine under test.
type stage struct {
	t      *testing.T
	dir    string
	progs  programs
	env    []string
	argv   []string // of the controller
	client *api.Client
	ctl    *exec.Cmd
	ended  chan error
	log    *bytes.Buffer
	lives  int
	// metrics is where the exporter answers over TCP.
	metrics string
}

func newStage(t *testing.T, progs programs, env ...string) *stage {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for cgroups of their own; the driver's suite runs without")
	}
	dir, err := os.MkdirTemp("", "pp") //nolint:usetesting // short: a socket's path has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "site.yaml"), []byte(site), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{
		t: t, dir: dir, progs: progs, env: env, argv: []string{self, roleController}, log: &bytes.Buffer{},
		client: api.NewClient(filepath.Join(dir, "controller.sock")), metrics: sandbox.Address(t),
	}
	t.Cleanup(s.client.Close)
	socket := filepath.Join(dir, "exporter.sock")
	exporter := exec.CommandContext(context.WithoutCancel(t.Context()), progs.path("pitchpipe-exporter"), "--socket", socket,
		"--web.listen-address="+s.metrics, "--sampling.interval=250ms", "--log.level=error")
	if err := exporter.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exporter.Process.Signal(syscall.SIGTERM); _ = exporter.Wait() })
	meter := exporterapi.NewClient(socket)
	defer meter.Close()
	s.await("the exporter", func() error { _, err := meter.Node(t.Context()); return err })
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("controller log, last lines:\n%s", tail(s.log.String(), 60))
		}
	})
	t.Cleanup(s.kill)
	return s
}

func tail(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// patience is how long the tests wait for what must come. It is long, for machines
// that are busy: only a test that fails waits for it.
const patience = 9 * time.Minute

func (s *stage) await(what string, ask func() error) {
	s.t.Helper()
	sandbox.Await(s.t, patience, what, ask)
}

// start begins a life of the controller.
func (s *stage) start() {
	s.t.Helper()
	s.lives++
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), s.argv[0], s.argv[1:]...)
	cmd.Env = append(sandbox.Environ("HOME="+s.dir, envDir+"="+s.dir), s.env...)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s.ctl, s.ended = cmd, ended
}

// alive reports whether the controller still runs.
func (s *stage) alive() bool {
	select {
	case err := <-s.ended:
		s.ended <- err
		return false
	default:
		return true
	}
}

func (s *stage) kill() {
	if s.ctl == nil {
		return
	}
	_ = s.ctl.Process.Signal(syscall.SIGKILL)
	s.ended <- <-s.ended
}
