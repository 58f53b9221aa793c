package output_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/output"
)

const user = 65534

// opened reports whether the file was opened since the watch on it began.
func opened(t *testing.T, path string) func() bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func() bool {
		n, err := unix.Read(fd, make([]byte, 4096))
		return err == nil && n > 0
	}
}

func makeFile(path string) error { return os.WriteFile(path, []byte("secret\n"), 0o644) }

func makeNode(mode uint32, dev uint64) func(string) error {
	return func(path string) error { return unix.Mknod(path, mode|0o666, int(dev)) } //nolint:gosec // a small number
}

func TestOnlyAPlainFileOfTheUserIsOpened(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root reads for others")
	}
	for name, c := range map[string]struct {
		make  func(path string) error
		owner int
		want  error
	}{
		"a plain file of the user is read":           {makeFile, user, nil},
		"a plain file of another is not opened":      {makeFile, 12345, driver.ErrDenied},
		"a plain file of root is not opened":         {makeFile, 0, driver.ErrDenied},
		"a FIFO is not opened":                       {makeNode(unix.S_IFIFO, 0), user, driver.ErrUnsupported},
		"a device without an end is not opened":      {makeNode(unix.S_IFCHR, unix.Mkdev(1, 5)), user, driver.ErrUnsupported},
		"a directory is not opened":                  {func(p string) error { return os.Mkdir(p, 0o755) }, user, driver.ErrUnsupported},
		"a socket is not opened":                     {makeNode(unix.S_IFSOCK, 0), user, driver.ErrUnsupported},
		"a block device of the user's is not opened": {makeNode(unix.S_IFBLK, unix.Mkdev(7, 0)), user, driver.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
			if err := errors.Join(c.make(path), os.Lchown(path, c.owner, c.owner), os.Symlink(path, link), os.Lchown(link, user, user)); err != nil {
				t.Fatal(err)
			}
			seen := opened(t, path)
			for _, name := range []string{path, link} {
				f, err := new(output.Reader).Open(name, user)
				if !errors.Is(err, c.want) {
					t.Errorf("Open: %v, want %v", err, c.want)
				}
				if err == nil {
					data, err := io.ReadAll(f)
					if err := errors.Join(err, f.Close()); err != nil || string(data) != "secret\n" {
						t.Errorf("read %q (%v)", data, err)
					}
				}
			}
			if got, want := seen(), c.want == nil; got != want {
				t.Errorf("opened %v, want %v", got, want)
			}
		})
	}
}

func TestAFileOfTheKernelIsNotOpenedThoughItIsTheUsers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root reads for others")
	}
	c := exec.CommandContext(t.Context(), "sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	path := fmt.Sprintf("/proc/%d/pagemap", c.Process.Pid)
	if _, err := new(output.Reader).Open(path, user); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("Open: %v, want %v", err, driver.ErrUnsupported)
	}
}

func TestAFileThatIsNotThereHasNoContent(t *testing.T) {
	t.Parallel()
	var r output.Reader
	path := filepath.Join(t.TempDir(), "none")
	if _, err := r.Open(path, output.AnyUser); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open: %v, want %v", err, fs.ErrNotExist)
	}
	data, err := r.Tail(path, output.AnyUser, 0)
	size, sizeErr := r.Size(path, output.AnyUser)
	if err != nil || sizeErr != nil || len(data) != 0 || size != 0 {
		t.Errorf("read %q (%v) of %d bytes (%v), want none", data, err, size, sizeErr)
	}
}

func TestAFileSystemThatHangsHoldsUpItsUserOnly(t *testing.T) {
	t.Parallel()
	dir := drivertest.Hang(t)
	other := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(other, []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var r output.Reader
	for range 4 {
		if _, err := r.Size(filepath.Join(dir, "file"), user); !errors.Is(err, driver.ErrTransient) {
			t.Errorf("Size: %v, want %v", err, driver.ErrTransient)
		}
	}
	// The next call does not wait, since the first ones have not returned.
	began := time.Now()
	if _, err := r.Tail(filepath.Join(dir, "file"), user, 0); !errors.Is(err, driver.ErrTransient) {
		t.Errorf("Tail: %v, want %v", err, driver.ErrTransient)
	}
	if waited := time.Since(began); waited >= output.Patience {
		t.Errorf("waited %v for a user whose files hang", waited)
	}
	if data, err := r.Tail(other, os.Geteuid(), 0); err != nil || string(data) != "line\n" {
		t.Errorf("another's file: %q (%v)", data, err)
	}
}

func TestOnlyWholeLinesCount(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"saved": false, "saved\n": true, "x\nsaved\ny": true, "": false, "unsaved\n": false,
		"99%|#\r     \rsaved\n": true, "saved\r\n": true, "99%|#\runsaved\n": false, "99%|#\rsaved": false,
	} {
		if got, err := output.Says([]byte(text), "^saved$"); err != nil || got != want {
			t.Errorf("%q says saved: %v (%v), want %v", text, got, err, want)
		}
	}
	if _, err := output.Says(nil, "("); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("Says: %v, want %v", err, driver.ErrInvalid)
	}
}
