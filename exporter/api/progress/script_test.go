package progress_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pitchpipe/exporter/api/progress"
)

// child starts a process of this test that writes to the file until it is let go.
func child(t *testing.T, out *os.File, script string) (*progress.Script, *exec.Cmd) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Stdout, cmd.Dir = out, filepath.Dir(out.Name())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found, err := progress.FindScript(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := found.Close(); err != nil {
			t.Error(err)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return found, cmd
}

func create(t *testing.T, path, text string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return f
}

// The attempt is this test process's: what was made since it began is the attempt's.
func TestOutputIsReadFromWhereTheAttemptBegan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := create(t, filepath.Join(dir, "out"), "a line\n")
	found, _ := child(t, out, "sleep 600")
	path, offset, err := found.Output(t.Context())
	if err != nil || path != out.Name() || offset != 0 {
		t.Errorf("%q from %d (%v), want %q from 0: the file was made in this attempt", path, offset, err, out.Name())
	}
	if got := found.Begin(filepath.Join(dir, "not there")); got != 0 {
		t.Errorf("a file that is not there begins at %d", got)
	}
	older, err := os.Stat("script_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if got := found.Begin("script_test.go"); got != older.Size() {
		t.Errorf("a file that is older than the attempt begins at %d, want %d", got, older.Size())
	}
}

func TestAnOutputThatIsNoPlainFileIsNotFollowed(t *testing.T) {
	t.Parallel()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	found, _ := child(t, null, "sleep 600")
	if path, offset, err := found.Output(t.Context()); path != "" || offset != 0 || err != nil {
		t.Errorf("%q from %d (%v), want none", path, offset, err)
	}
	gone := create(t, filepath.Join(t.TempDir(), "out"), "")
	found, _ = child(t, gone, "sleep 600")
	if err := os.Remove(gone.Name()); err != nil {
		t.Fatal(err)
	}
	if path, _, err := found.Output(t.Context()); path != "" || err != nil {
		t.Errorf("%q (%v) of a file that was removed, want none", path, err)
	}
}

func TestWaitEndsWithTheProcessAndWithTheContext(t *testing.T) {
	t.Parallel()
	out := create(t, filepath.Join(t.TempDir(), "out"), "")
	found, cmd := child(t, out, "exec sleep 600")
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := found.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it runs: %v, want %v", err, context.DeadlineExceeded)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := found.Wait(t.Context()); err != nil { // not reaped yet, and over all the same
		t.Error(err)
	}
	_ = cmd.Wait()
	if err := found.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if _, _, err := found.Output(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the output of one that is gone: %v, want %v", err, fs.ErrNotExist)
	}
	if _, err := progress.FindScript(cmd.Process.Pid); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("found again: %v, want %v", err, syscall.ESRCH)
	}
}

// A process of another user looks like one that has not begun its script.
func TestOutputOfAnotherUsersProcess(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root sees all processes")
	}
	found, err := progress.FindScript(1)
	if err != nil {
		t.Skipf("process 1: %v", err)
	}
	t.Cleanup(func() { _ = found.Close() })
	if _, _, err := found.Output(t.Context()); !errors.Is(err, progress.ErrHidden) {
		t.Errorf("%v, want %v", err, progress.ErrHidden)
	}
}
