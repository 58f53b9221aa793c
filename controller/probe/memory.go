package probe

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Memory is what one run of probes remembers. Save is durable when it returns.
type Memory interface {
	// Name begins the names of its requests. It never changes during a run of probes,
	// and no two runs have the same.
	Name() string
	Load() ([]Tried, error)
	Save([]Tried) error
}

// version is that of the file.
const version = 1

type content struct {
	Version int     `json:"version"`
	Name    string  `json:"name"`
	Tried   []Tried `json:"tried"`
}

// File is a Memory in a file.
type File struct {
	path string
	now  content
}

// Open reads a file, or begins a new one where there is none.
func Open(path string) (*File, error) {
	f := &File{path: path}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.now = content{Version: version, Name: "probe-" + strings.ToLower(rand.Text()[:8])}
		return f, f.write()
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(data, &f.now); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if f.now.Version != version || f.now.Name == "" {
		return nil, fmt.Errorf("%s: version %d is not known", path, f.now.Version)
	}
	return f, nil
}

// Name begins the names of its requests.
func (f *File) Name() string { return f.now.Name }

// Load is what was saved last.
func (f *File) Load() ([]Tried, error) { return f.now.Tried, nil }

// Save replaces what is remembered.
func (f *File) Save(t []Tried) error {
	f.now.Tried = t
	return f.write()
}

func (f *File) write() error {
	data, err := json.Marshal(f.now)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.path), ".probe-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // it is not there where all went well
	_, err = tmp.Write(append(data, '\n'))
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), f.path)
}
