package slurmlua_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// plugin is the folder that a site installs.
const plugin = "../../scripts/slurm"

// interpreters lists the Lua interpreters of this machine. Slurm of Debian 12 is
// linked with 5.1.
func interpreters(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, name := range []string{"lua5.1", "lua5.3", "lua5.4", "luajit"} {
		if path, err := exec.LookPath(name); err == nil {
			out = append(out, path)
		}
	}
	if len(out) == 0 || os.Getenv("PITCHPIPE_REQUIRE_TOOLS") != "" && filepath.Base(out[0]) != "lua5.1" {
		missing(t, "the interpreter lua5.1, which Slurm of Debian 12 is linked with")
	}
	return out
}

// missing skips the test, or fails it where the tools must be there.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("PITCHPIPE_REQUIRE_TOOLS") != "" {
		t.Fatalf("%s is missing", what)
	}
	t.Skipf("%s is missing", what)
}

// fault is one fault that the plugin found.
type fault struct {
	line, column int
	text         string
}

func (f fault) place() string { return fmt.Sprintf("%d:%d", f.line, f.column) }

// verdict is what the plugin says about one script.
type verdict struct {
	none         bool
	faults       []fault
	record, mark string
}

func (v verdict) places() []string {
	out := []string{}
	for _, f := range v.faults {
		out = append(out, f.place())
	}
	return out
}

// examiner is one interpreter with the plugin loaded.
type examiner struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

func start(t *testing.T, lua string) *examiner {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), lua, "testdata/examine.lua", plugin)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &examiner{in: in, out: bufio.NewReader(out)}
}

// examine asks the plugin about one script.
func (e *examiner) examine(script string) (verdict, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, err := fmt.Fprintf(e.in, "%d\n%s", len(script), script); err != nil {
		return verdict{}, err
	}
	head, err := e.read()
	if err != nil {
		return verdict{}, err
	}
	n, err := strconv.Atoi(head)
	if err != nil {
		return verdict{}, err
	}
	if n < 0 {
		return verdict{none: true}, nil
	}
	var v verdict
	for range n {
		text, err := e.read()
		if err != nil {
			return verdict{}, err
		}
		fields := strings.SplitN(text, " ", 3)
		line, lineErr := strconv.Atoi(fields[0])
		column, columnErr := strconv.Atoi(fields[1])
		if lineErr != nil || columnErr != nil {
			return verdict{}, fmt.Errorf("no place in %q", text)
		}
		v.faults = append(v.faults, fault{line: line, column: column, text: fields[2]})
	}
	if n > 0 {
		return v, nil
	}
	if v.record, err = e.read(); err != nil {
		return verdict{}, err
	}
	v.mark, err = e.read()
	return v, err
}

func (e *examiner) read() (string, error) {
	line, err := e.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}
