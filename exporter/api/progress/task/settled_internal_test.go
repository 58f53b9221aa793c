package task

import (
	"os"
	"path/filepath"
	"testing"
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
	self, err := Find(os.Getpid())
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
