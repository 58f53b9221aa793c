package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs/certstest"
	"pitchpipe/test/sandbox"
)

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	sandbox.Until(t, 2*time.Minute, what, is)
}

// program builds the exporter that nodes run.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := sandbox.Build(t.Context(), dir, sandbox.Exporter); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "pitchpipe-exporter")
}

// launch starts an exporter, and returns what it logs and how it is killed, which
// happens at the end of the test at the latest.
func launch(t *testing.T, path string, args ...string) (log *said, kill func()) {
	t.Helper()
	log = &said{}
	c := exec.CommandContext(context.WithoutCancel(t.Context()), path, append(args, "--web.listen-address=", "--sampling.interval=200ms", "--sampling.discover=50ms")...)
	c.Stderr = log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	gone := false
	kill = func() {
		if !gone {
			gone = true
			_ = c.Process.Signal(syscall.SIGKILL)
			_ = c.Wait()
		}
	}
	t.Cleanup(kill)
	return log, kill
}

// aJob runs a process that the exporters of this machine take for a job.
func aJob(t *testing.T) string {
	t.Helper()
	id := fmt.Sprintf("nodes-%d", os.Getpid())
	c := exec.CommandContext(context.WithoutCancel(t.Context()), "sleep", "600")
	c.Env = append(os.Environ(), "PITCHPIPE_JOB_ID="+id)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return id
}

func TestEachNodesExporterIsAskedForItsOwnJobs(t *testing.T) {
	t.Parallel()
	path, job, dir := program(t), aJob(t), t.TempDir()
	socket := func(node string) string { return filepath.Join(dir, node+".sock") }
	_, kill := launch(t, path, "--socket", socket("n1"))
	launch(t, path, "--socket", socket("n2"))
	var heard said
	e, err := New(Config{Pattern: "unix:" + socket(Placeholder), Log: logging(&heard)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	samples := func(node string) error {
		w, err := e.Window(t.Context(), node, job, 0, 0)
		if err == nil && len(w.Samples) == 0 {
			return errors.New("no samples yet")
		}
		return err
	}
	for _, node := range []string{"n1", "n2"} {
		until(t, node+" has samples of the job", func() bool { return samples(node) == nil })
		if about, err := e.Node(t.Context(), node); err != nil || about.Cores == 0 {
			t.Errorf("%s: %+v, %v", node, about, err)
		}
	}
	// Both are on this machine, so that a job that waits will run on one like it.
	if about, err := e.Node(t.Context(), ""); err != nil || about.Cores == 0 || about.MachineKind == "" {
		t.Errorf("no node in particular: %+v, %v", about, err)
	}
	if err := samples("n3"); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "n3") {
		t.Errorf("a node without an exporter: %v", err)
	}

	// An exporter that was asked before it listened was silent until then.
	_, before := heard.lines()
	kill()
	until(t, "n1 is silent", func() bool { return errors.Is(samples("n1"), api.ErrUnavailable) })
	for range 20 {
		if err := samples("n2"); err != nil {
			t.Errorf("n2 while n1 is dead: %v", err)
		}
	}
	launch(t, path, "--socket", socket("n1"))
	until(t, "n1 is back", func() bool { return samples("n1") == nil })
	_, text := heard.lines()
	if after := text[len(before):]; strings.Contains(after, "node=n2") || strings.Count(after, "node=n1") < 2 {
		t.Errorf("the log since n1 was killed:\n%s", after)
	}
}

func TestANodesExporterIsAskedOverTLS(t *testing.T) {
	t.Parallel()
	path, job := program(t), aJob(t)
	ca := certstest.New(t, "site")
	theirs := ca.Files(t, certstest.Leaf{Name: "localhost", DNS: []string{"localhost"}, Server: true}, ca)
	own := ca.Files(t, certstest.Leaf{Name: "pitchpipe-controller", Client: true}, ca)
	log, _ := launch(t, path, "--socket", filepath.Join(t.TempDir(), "s"), "--api.listen-address=localhost:0",
		"--api.cert", theirs.Cert, "--api.key", theirs.Key, "--api.client-ca", theirs.CA, "--api.clients=pitchpipe-controller")
	port := ""
	until(t, "the exporter listens", func() bool {
		_, text := log.lines()
		if m := regexp.MustCompile(`address=\S+:(\d+) serves="jobs over TLS"`).FindStringSubmatch(text); m != nil {
			port = m[1]
		}
		return port != ""
	})
	e, err := New(Config{Pattern: "https://{node}:" + port, Cert: own.Cert, Key: own.Key, CA: own.CA})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	until(t, "samples of the job come", func() bool {
		w, err := e.Window(t.Context(), "localhost", job, 0, 0)
		if err != nil && !errors.Is(err, api.ErrNotFound) {
			t.Fatal(err)
		}
		return len(w.Samples) > 0
	})
	// The certificate is for the name of the node, and for no other that leads there.
	if _, err := e.Window(t.Context(), "127.0.0.1", job, 0, 0); !errors.Is(err, api.ErrUnavailable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("by another name: %v", err)
	}
}
