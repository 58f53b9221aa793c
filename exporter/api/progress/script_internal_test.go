package progress

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A shell's output is elsewhere for the moment of a builtin command with a redirection.
func TestOutputIsWhereItStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"log": "epoch 2\n", "out": ""} {
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := FindScript(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = self.Close() })
	for name, c := range map[string]struct{ seen, stays, want string }{
		"it stays where it was":               {"out", "out", file("out")},
		"it was elsewhere for a moment":       {"log", "out", file("out")},
		"it stays where there is no file":     {"none", "none", ""},
		"it comes from where there is none":   {"none", "out", file("out")},
		"the process has ended: as it was":    {"out", "", file("out")},
		"the process has ended, without file": {"none", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link := filepath.Join(t.TempDir(), "1")
			if c.stays != "" {
				if err := os.Symlink(file(c.stays), link); err != nil {
					t.Fatal(err)
				}
			}
			path, _, err := self.settled(t.Context(), link, file(c.seen))
			if err != nil || path != c.want {
				t.Errorf("%q (%v), want %q", path, err, c.want)
			}
		})
	}
}

// A shell that is stopped within its own command with a redirection is not followed there.
func TestAShellThatPutItsOutputAsideIsFoundOut(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "bash"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out, err := os.Create(filepath.Join(dir, "out"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = out.Close() }() // nothing is written here
			cmd := exec.CommandContext(t.Context(), shell, "-c", "while :; do { read line; } >>log; read line; done")
			cmd.Dir, cmd.Stdout = dir, out
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			task, err := FindScript(cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = task.Close() })
			for _, file := range []string{"log", "out", "log"} {
				path := filepath.Join(dir, file)
				for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
					if got, _ := os.Readlink(task.proc("fd", "1")); got == path {
						break
					}
					if time.Now().After(end) {
						t.Fatalf("its output never was %s", path)
					}
				}
				if aside := task.putAside(path); aside != (file == "log") {
					t.Errorf("while its output is %s it is put aside: %t", file, aside)
				}
				if _, err := io.WriteString(in, "\n"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
