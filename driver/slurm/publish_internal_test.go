package slurm

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// as tells what a user gets who reads the file.
func as(t *testing.T, uid uint32, path string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cat", path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.Output()
	return string(out), err
}

func TestOnlyItsUserReadsTheSettingsOfAJob(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can look as several users")
	}
	dir, err := os.MkdirTemp("", "pitchpipe-publish-") //nolint:usetesting // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "7")
	for _, text := range []string{"RATE=1\n", "RATE=2\n"} { // it is replaced, too
		openly, err := publish(path, []byte(text), 12345, reads)
		if err != nil {
			t.Fatal(err)
		}
		if openly {
			t.Skipf("the filesystem of %s has no access lists", dir)
		}
		if got, err := as(t, 12345, path); err != nil || got != text {
			t.Errorf("its user reads %q (%v), want %q", got, err, text)
		}
		if got, err := as(t, 12346, path); err == nil {
			t.Errorf("another user reads %q", got)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("mode %v (%v): the TaskProlog refuses what others may write", info.Mode(), err)
	}
}

func TestSettingsOfAnOwnJobAreItsOwnersAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "7")
	never := func(*os.File, uint32) error { return errors.New("asked for an access list") }
	if openly, err := publish(path, nil, uint32(os.Geteuid()), never); openly || err != nil {
		t.Fatal(openly, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v (%v), want 0600", info.Mode(), err)
	}
}

func TestWhereThereAreNoAccessListsEverybodyReadsTheSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "7")
	none := func(f *os.File, _ uint32) error {
		return &os.PathError{Op: "fsetxattr", Path: f.Name(), Err: unix.ENOTSUP}
	}
	if openly, err := publish(path, []byte("RATE=1\n"), 12345, none); !openly || err != nil {
		t.Fatal(openly, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v (%v), want 0644", info.Mode(), err)
	}
}

func TestWhatCannotBeGrantedIsNotWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	full := func(*os.File, uint32) error { return unix.ENOSPC }
	if _, err := publish(filepath.Join(dir, "7"), nil, 12345, full); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%v, want %v", err, unix.ENOSPC)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v (%v) is left", left, err)
	}
}
