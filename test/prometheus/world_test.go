package prometheus_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pitchpipe/test/sandbox"
)

// patience is how long what must come is waited for. Only a test that fails waits so
// long.
const patience = 4 * time.Minute

// workshop makes the programs when the first test asks for them.
type workshop struct {
	once sync.Once
	dir  string
	err  error
}

var shop workshop

func TestMain(m *testing.M) {
	status := m.Run()
	if shop.dir != "" {
		_ = os.RemoveAll(shop.dir)
	}
	os.Exit(status)
}

func (s *workshop) make() {
	if s.dir, s.err = os.MkdirTemp("", "pitchpipe-prometheus-"); s.err != nil {
		return
	}
	s.err = sandbox.Build(context.Background(), s.dir, sandbox.Pitchpipe, sandbox.Exporter)
}

// world is one machine under test.
type world struct {
	t   *testing.T
	dir string
	log map[string]*lines
}

// lines is the output of a program, which is shown where its test fails.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "pp") //nolint:usetesting // short: a socket's path has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, log: map[string]*lines{}}
	t.Cleanup(func() {
		if t.Failed() {
			for name, l := range w.log {
				text := l.String()
				t.Logf("%s, at the end:\n%s", name, text[max(0, len(text)-3000):])
			}
		}
		_ = os.RemoveAll(dir)
	})
	return w
}

// tool is a program that scripts/setup-test fetches.
func (w *world) tool(name string) string {
	w.t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path, err := filepath.Abs(filepath.Join("..", "..", ".build", "tools", name))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		w.t.Skipf("%s is missing; scripts/setup-test fetches it", name)
	}
	return path
}

// program is one of ours.
func (w *world) program(name string) string {
	w.t.Helper()
	shop.once.Do(shop.make)
	if shop.err != nil {
		w.t.Fatal(shop.err)
	}
	return filepath.Join(shop.dir, name)
}

// start runs a program until the test ends or stop is called.
func (w *world) start(named ...string) (stop func()) {
	w.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), named[1], named[2:]...)
	cmd.Env = sandbox.Environ("HOME=" + w.dir)
	out := &lines{}
	w.log[named[0]] = out
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() })
	w.t.Cleanup(stop)
	return stop
}

func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) await(what string, ask func() error) {
	w.t.Helper()
	sandbox.Await(w.t, patience, what, ask)
}

// controller runs one with the embedded scheduler, whose jobs end with the test.
func (w *world) controller(exporter string) {
	w.t.Helper()
	if os.Geteuid() != 0 {
		w.t.Skip("needs root, for cgroups by which the exporter knows a job again")
	}
	name := "prom" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, filepath.Base(w.dir))
	w.start("controller", w.program("pitchpipe"), "controller", "--config", w.write("controller.yaml", ""), "--site", w.write("site.yaml", "default:\n  control: 0\n"),
		"--socket", filepath.Join(w.dir, "controller.sock"), "--state", filepath.Join(w.dir, "state"),
		"--local.dir", filepath.Join(w.dir, "jobs"), "--local.cluster", name, "--exporter.socket", exporter, "--listen", "")
	w.await("the controller", func() error {
		_, err := w.ask("status")
		return err
	})
}

func (w *world) ask(args ...string) (string, error) {
	c := exec.CommandContext(w.t.Context(), w.program("pitchpipe"), append(args, "--socket", filepath.Join(w.dir, "controller.sock"))...)
	c.Env = sandbox.Environ("HOME=" + w.dir)
	c.Dir = w.dir
	var problem bytes.Buffer
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		return "", errors.Join(err, errors.New(problem.String()))
	}
	return string(out), nil
}

func (w *world) pitchpipe(args ...string) string {
	w.t.Helper()
	out, err := w.ask(args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}
