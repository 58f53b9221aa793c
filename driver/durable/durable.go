package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// WriteJSON replaces path by the JSON of v: a temporary file next to it, written and synced,
// renamed over it, and the directory synced.
func WriteJSON(path string, v any, mode os.FileMode) error {
	data, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return Write(path, append(data, '\n'), mode)
}

// Write replaces path by data, as WriteJSON does.
func Write(path string, data []byte, mode os.FileMode) error {
	return WriteWith(path, data, mode, nil)
}

// WriteWith is Write with a hook: prepare, unless nil, gets the file before it has content,
// its mode and its name. There is no file where prepare fails.
func WriteWith(path string, data []byte, mode os.FileMode, prepare func(f *os.File) error) error {
	return put(path, data, mode, prepare, os.Rename)
}

// Claim creates path with the JSON of v, and reports an error that is
// fs.ErrExist where path is there already: of any number of claimants one wins,
// and what it claimed with is whole. It links a finished file to its name, since
// an exclusive creation alone could be seen, or left by a crash, without content.
func Claim(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return put(path, data, 0o600, nil, func(from, to string) error { return errors.Join(os.Link(from, to), os.Remove(from)) })
}

// put writes and syncs a temporary file next to path, gives it the name, and syncs the directory.
func put(path string, data []byte, mode os.FileMode, prepare func(f *os.File) error, name func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if prepare != nil {
		err = prepare(f)
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = name(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error is the one before
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// ReadJSON reads the JSON of path into v. Its error is fs.ErrNotExist where there
// is no such file.
func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading state: %w", err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// MkdirAll is Mkdir that syncs the last parent.
func MkdirAll(path string, mode os.FileMode) error {
	if err := Mkdir(path, mode); err != nil {
		return fmt.Errorf("making a state directory: %w", err)
	}
	return SyncDir(filepath.Dir(path))
}

// Mkdir makes the directory and its parents, and adds the mode to that of a directory which the
// umask or an earlier version kept closed. One of another user, who alone can do it, stays as it is.
func Mkdir(path string, mode os.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && info.Mode()&mode != mode {
		if err = os.Chmod(path, info.Mode()|mode); errors.Is(err, os.ErrPermission) {
			return nil
		}
	}
	return err
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing a directory: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("syncing %s: %w", path, err)
	}
	return nil
}

// Lock makes a directory this process's until Unlock, or until the process ends. Its error is
// unix.EWOULDBLOCK where it is another's.
func Lock(dir string) (*os.File, error) { return flock(dir, unix.LOCK_EX|unix.LOCK_NB) }

// WaitLock is Lock that waits for the other.
func WaitLock(dir string) (*os.File, error) { return flock(dir, unix.LOCK_EX) }

func flock(dir string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), how)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(f.Fd()), how)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("another process, such as a second controller, has %s open: %w", dir, err), f.Close())
	}
	return f, nil
}

// Unlock frees the directory. The lock goes before the file: a command that is just
// being started may have a copy of the descriptor.
func Unlock(f *os.File) error {
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}
