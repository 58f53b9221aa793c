package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ErrName means that a record cannot have that name: want one or more of
// [A-Za-z0-9_-].
var ErrName = errors.New("not a name of a record")

const suffix = ".json"

// Folder keeps records under names, a file for each. A record is on disk as a whole when
// Save returns, or is as it was.
type Folder struct{ dir string }

// OpenFolder makes the folder where it is missing.
func OpenFolder(dir string) (Folder, error) {
	return Folder{dir}, MkdirAll(dir, 0o700)
}

func (f Folder) path(name string) (string, error) {
	if name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return "", fmt.Errorf("record %q: %w", name, ErrName)
	}
	return filepath.Join(f.dir, name+suffix), nil
}

// Load returns a record. Its error is fs.ErrNotExist where there is none.
func (f Folder) Load(_ context.Context, name string) ([]byte, error) {
	path, err := f.path(name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", name, err)
	}
	return data, nil
}

// Save replaces a record.
func (f Folder) Save(_ context.Context, name string, record []byte) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	return Write(path, record, 0o600)
}

// LoadJSON is Load of a record that SaveJSON wrote, into v.
func (f Folder) LoadJSON(name string, v any) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	return ReadJSON(path, v)
}

// SaveJSON is Save of the JSON of v.
func (f Folder) SaveJSON(name string, v any) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	return WriteJSON(path, v, 0o600)
}

// Delete forgets a record. One that is not there is forgotten already.
func (f Folder) Delete(_ context.Context, name string) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("record %s: %w", name, err)
	}
	return SyncDir(f.dir)
}

// List returns the names of all records, sorted.
func (f Folder) List(context.Context) ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	var out []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), suffix); ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}
