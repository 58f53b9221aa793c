package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/test/sandbox"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := programs.remove(); err != nil {
			panic(err)
		}
		os.Exit(code)
	}))
}

// built is where the programs are that some tests install: linking them is dear, so it
// happens once.
type built struct {
	once sync.Once
	dir  string
	err  error
}

var programs built

// folder holds pitchpipe and pitchpipe-exporter, or the error tells why not.
func (b *built) folder() (string, error) {
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "pitchpipe-programs-"); b.err == nil {
			b.err = sandbox.Build(context.Background(), b.dir, sandbox.Pitchpipe, sandbox.Exporter)
		}
	})
	return b.dir, b.err
}

// install puts a copy of both into a folder.
func (b *built) install(dir string) error {
	from, err := b.folder()
	if err != nil {
		return err
	}
	for _, name := range []string{"pitchpipe", "pitchpipe-exporter"} {
		program, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), program, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func (b *built) remove() error {
	if b.dir == "" {
		return nil
	}
	return os.RemoveAll(b.dir)
}

// result is what a command line left behind.
type result struct {
	code        int
	out, errors string
}

// pitchpipe runs one command line in process. Its environment keeps it from a controller of
// this machine.
func pitchpipe(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := command.Run(t.Context(), command.World{
		Args: args, Environ: []string{"PITCHPIPE_SOCKET=/nonexistent/controller.sock"}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Version: "1.2.3-test",
	})
	for name, text := range map[string]string{"output": out.String(), "errors": errs.String()} {
		if strings.ContainsRune(text, '\x1b') {
			t.Errorf("pitchpipe %s: the %s is no terminal and has escape codes: %q", strings.Join(args, " "), name, text)
		}
	}
	return result{code, out.String(), errs.String()}
}

// ok runs a command line that has to succeed. Run says what will happen next to its output.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	r := pitchpipe(t, args...)
	told := args[0] == "run" && strings.Contains(r.errors, ".sbatch: valid")
	if r.code != command.ExitOK || r.errors != "" && !told {
		t.Fatalf("pitchpipe %s: exit %d, errors %q", strings.Join(args, " "), r.code, r.errors)
	}
	return r.out
}

// decoded runs a command line with --json and reads its output into v, which has
// to take all of it.
func decoded(t *testing.T, v any, args ...string) {
	t.Helper()
	text := ok(t, append(args, "--json")...)
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(v); err != nil || d.More() {
		t.Fatalf("pitchpipe %s --json: %v in %s", strings.Join(args, " "), err, text)
	}
}

// jobFile writes a job for the simulated cluster.
func jobFile(t *testing.T, name string, epochs int, seconds float64, lines ...string) string {
	t.Helper()
	return write(t, name+".sbatch", string(daemontest.Script(name, epochs, seconds, lines...)))
}

func write(t *testing.T, name, text string) string { return written(t, t.TempDir(), name, text) }

func written(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
