package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/test/sandbox"
)

func folder(t *testing.T, parent, name string) string {
	t.Helper()
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ended is the id of a process that has ended and was waited for.
func ended(t *testing.T) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestAFolderIsSweptWhenItsOwnerIsGone(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	if err := sandbox.Own(folder(t, parent, "x-mine")); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		t.Helper()
		dir := folder(t, parent, name)
		if err := os.WriteFile(filepath.Join(dir, "owner"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	gone := write("x-gone", fmt.Sprintf(`{"pid":%d,"start":1}`, ended(t)))
	again := write("x-again", fmt.Sprintf(`{"pid":%d,"start":1}`, os.Getpid())) // the id was used again
	write("y-gone", `{"pid":1,"start":0}`)
	folder(t, parent, "x-young") // somebody may be about to write its owner
	old := folder(t, parent, "x-old")
	past := time.Now().Add(-2 * time.Minute)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "x-file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var swept []string
	failed := errors.New("no")
	err := sandbox.Sweep(filepath.Join(parent, "x-*"), func(dir string) error {
		swept = append(swept, dir)
		if dir == gone {
			return failed // the others are swept all the same
		}
		return nil
	})
	if diff := cmp.Diff([]string{again, gone, old}, swept); diff != "" || !errors.Is(err, failed) {
		t.Errorf("%v, swept (-want +got):\n%s", err, diff)
	}
}

func TestAProcessIsDeadWhenItHasEnded(t *testing.T) {
	t.Parallel()
	if sandbox.Dead(os.Getpid()) || !sandbox.Dead(ended(t)) {
		t.Error("this process is dead, or one that has ended is not")
	}
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !sandbox.Dead(cmd.Process.Pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("one that is only waited for is not dead")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
