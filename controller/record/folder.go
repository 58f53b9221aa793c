package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"pitchpipe/controller/evaluate"
)

// ErrFolder means that the folder cannot be recorded into.
var ErrFolder = errors.New("not a folder for this recording")

// folder is where a recording is kept: plan.json, runs/ID.json, and the tables.
type folder struct{ dir string }

// open makes the folder, or checks that it holds the same plan.
func (f folder) open(p Plan) error {
	if err := os.MkdirAll(filepath.Join(f.dir, "runs"), 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	at := filepath.Join(f.dir, "plan.json")
	var there, here Plan
	switch ok, err := readJSON(at, &there); {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrFolder, err)
	case !ok:
		return writeJSON(at, p)
	}
	again, err := json.Marshal(p) // as it would be read back: nil and empty are the same then
	if err == nil {
		err = json.Unmarshal(again, &here)
	}
	if err != nil || !reflect.DeepEqual(there, here) {
		return fmt.Errorf("%w: %s holds the runs of another plan (plan.json): want the same plan, or another folder", ErrFolder, f.dir)
	}
	return nil
}

func (f folder) path(c Cell) string { return filepath.Join(f.dir, "runs", c.ID+".json") }

// load reads a run that has ended; false: there is none.
func (f folder) load(c Cell) (r Run, ok bool, err error) {
	ok, err = readJSON(f.path(c), &r)
	return r, ok, err
}

func (f folder) save(r Run) error { return writeJSON(f.path(r.Cell), r) }

// write writes those tables that have rows.
func (f folder) write(tables []evaluate.Table) ([]string, error) {
	var out []string
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		at := filepath.Join(f.dir, string(t.Format)+".csv")
		if err := atomically(at, func(file *os.File) error { return evaluate.Write(file, t) }); err != nil {
			return out, err
		}
		out = append(out, at)
	}
	return out, nil
}

// readJSON reads a file; false: it is not there.
func readJSON(path string, into any) (bool, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the user named the folder
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", path, err)
	}
	return true, nil
}

func writeJSON(path string, v any) error {
	return atomically(path, func(f *os.File) error {
		e := json.NewEncoder(f)
		e.SetIndent("", " ")
		return e.Encode(v)
	})
}

// atomically writes a file whole or not at all: beside its place, then renamed.
func atomically(path string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone where it was renamed
	err = write(f)
	if err == nil {
		err = errors.Join(f.Chmod(0o644), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
