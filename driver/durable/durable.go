package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteJSON replaces path by the JSON of v: a temporary file beside it, written
// and synced, renamed over it, and the directory synced.
func WriteJSON(path string, v any, mode os.FileMode) error {
	data, err := json.MarshalIndent(v, "", "\t")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return Write(path, append(data, '\n'), mode)
}

// Write replaces path by data, as WriteJSON does.
func Write(path string, data []byte, mode os.FileMode) error {
	return WriteFor(path, data, mode, -1, -1)
}

// WriteFor is Write of a file that belongs to the user and group, where these are
// not -1, before it has its name.
func WriteFor(path string, data []byte, mode os.FileMode, uid, gid int) error {
	return WriteWith(path, data, mode, func(f *os.File) error {
		if uid < 0 && gid < 0 {
			return nil
		}
		return f.Chown(uid, gid)
	})
}

// WriteWith is Write of a file to which something is done before it has anything in
// it, its mode and its name. Where that fails there is no file.
func WriteWith(path string, data []byte, mode os.FileMode, prepare func(f *os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := prepare(f); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), f.Close(), os.Remove(f.Name()))
	}
	if err := fill(f, data, mode); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(f.Name()))
	}
	return SyncDir(filepath.Dir(path))
}

func fill(f *os.File, data []byte, mode os.FileMode) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
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
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return fmt.Errorf("claiming %s: %w", path, err)
	}
	err = fill(f, data, 0o600)
	if err == nil {
		err = os.Link(f.Name(), path)
	}
	err = errors.Join(err, os.Remove(f.Name()))
	if err != nil {
		return fmt.Errorf("claiming %s: %w", path, err)
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

// MkdirAll makes the directory and its parents, and syncs the last parent.
func MkdirAll(path string, mode os.FileMode) error {
	if err := os.MkdirAll(path, mode); err != nil {
		return fmt.Errorf("making a state directory: %w", err)
	}
	return SyncDir(filepath.Dir(path))
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
