package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAProgramOfTheDemoIsNotConfiguredByTheUsersEnvironment(t *testing.T) {
	t.Setenv("PITCHPIPE_DRIVER", "slurm")
	t.Setenv("OMP_NUM_THREADS", "3")
	seen := filepath.Join(t.TempDir(), "env")
	written := func() error { _, err := os.Stat(seen); return err }
	c, err := launch(t.Context(), seen+".log", written, "/bin/sh", "-c", `env >"$0.tmp"; mv "$0.tmp" "$0"; exec sleep 60`, seen)
	if err != nil {
		t.Fatal(err)
	}
	c.stop()
	env, err := os.ReadFile(seen)
	if text := string(env); err != nil || strings.Contains(text, "PITCHPIPE_DRIVER") || !strings.Contains(text, "OMP_NUM_THREADS=3\n") {
		t.Errorf("%v: environment\n%s\nwant it without PITCHPIPE_DRIVER, else the demo's controller tunes and ends the user's real jobs", err, text)
	}
}
