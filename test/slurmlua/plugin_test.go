package slurmlua_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
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

// verdict is what the plugin finds in one script. Faults and warnings are texts by place.
type verdict struct {
	faults, warnings map[string]string
	mark             string // empty = none
}

// examiner is one interpreter with the plugin loaded.
type examiner struct {
	mu  sync.Mutex
	in  io.Writer
	out *bufio.Reader
}

// each runs a test with every interpreter.
func each(t *testing.T, run func(t *testing.T, e *examiner)) {
	t.Helper()
	for _, lua := range interpreters(t) {
		t.Run(filepath.Base(lua), func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), lua, "testdata/examine.lua", plugin)
			cmd.Stderr = os.Stderr
			in, inErr := cmd.StdinPipe()
			out, outErr := cmd.StdoutPipe()
			if inErr != nil || outErr != nil {
				t.Fatal(inErr, outErr)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = in.Close()
				_ = cmd.Wait()
			})
			run(t, &examiner{in: in, out: bufio.NewReader(out)})
		})
	}
}

// examine asks the plugin about one script.
func (e *examiner) examine(t testing.TB, script string) verdict {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	line := func() string {
		text, err := e.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the plugin failed: %v\n%s", err, script)
		}
		return strings.TrimSuffix(text, "\n")
	}
	if _, err := fmt.Fprintf(e.in, "%d\n%s", len(script), script); err != nil {
		t.Fatal(err)
	}
	var faults, warnings int
	v := verdict{faults: map[string]string{}, warnings: map[string]string{}}
	head := line()
	if _, err := fmt.Sscanf(head, "%d %d %s", &faults, &warnings, &v.mark); err != nil {
		t.Fatalf("%v in %q", err, head)
	}
	v.mark = strings.TrimPrefix(v.mark, "-")
	for i := range faults + warnings {
		place, text, _ := strings.Cut(line(), " ")
		if i < faults {
			v.faults[place] = text
		} else {
			v.warnings[place] = text
		}
	}
	return v
}
