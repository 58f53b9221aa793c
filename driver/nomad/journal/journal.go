package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pitchpipe/driver/durable"
	"pitchpipe/driver/nomad"
)

// ErrName means that a record cannot have that name: want one or more of
// [A-Za-z0-9_-].
var ErrName = errors.New("not a name of a record")

const suffix = ".json"

// Files is a journal in a folder. It implements nomad.Journal.
type Files struct{ dir string }

// Open makes the folder where it is missing.
func Open(dir string) (Files, error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return Files{}, fmt.Errorf("journal: %w", err)
	}
	return Files{dir}, nil
}

func (f Files) path(name string) (string, error) {
	for _, c := range name {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-", c) {
			return "", fmt.Errorf("journal: %q: %w", name, ErrName)
		}
	}
	if name == "" {
		return "", fmt.Errorf("journal: an empty name: %w", ErrName)
	}
	return filepath.Join(f.dir, name+suffix), nil
}

// Load returns a record; its error is nomad.ErrNoRecord where there is none.
func (f Files) Load(_ context.Context, name string) ([]byte, error) {
	path, err := f.path(name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("journal: %s: %w", name, nomad.ErrNoRecord)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return data, nil
}

// Save replaces a record.
func (f Files) Save(_ context.Context, name string, record []byte) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	return durable.Write(path, record, 0o600)
}

// Delete forgets a record. One that is not there is forgotten already.
func (f Files) Delete(_ context.Context, name string) error {
	path, err := f.path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: %w", err)
	}
	return durable.SyncDir(f.dir)
}

// List returns the names of all records, sorted.
func (f Files) List(context.Context) ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
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
