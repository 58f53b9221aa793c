package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"pitchpipe/controller/evaluate/records"
)

// ErrFolder means that the folder cannot be recorded into.
var ErrFolder = errors.New("not a folder for this recording")

// folder is where a recording is kept: plan.json, runs/ID.json, and the tables.
type folder struct{ dir string }

func sum(text string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // documented never to fail
	return h.Sum32()
}

// open makes the folder, or checks that it holds the same plan.
func (f folder) open(p Plan) error {
	if err := os.MkdirAll(filepath.Join(f.dir, "runs"), 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	at := filepath.Join(f.dir, "plan.json")
	text, err := os.ReadFile(at) //nolint:gosec // the user named the folder
	if errors.Is(err, fs.ErrNotExist) {
		return writeJSON(at, p)
	}
	if err != nil {
		return fmt.Errorf("read the plan that is there: %w", err)
	}
	var there, here Plan
	if err := json.Unmarshal(text, &there); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFolder, at, err)
	}
	// As it would be read back: nil and empty are the same then.
	again, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	if err := json.Unmarshal(again, &here); err != nil || !reflect.DeepEqual(there, here) {
		return fmt.Errorf("%w: %s holds the runs of another plan (plan.json): want the same plan, or another folder", ErrFolder, f.dir)
	}
	return nil
}

func (f folder) path(c Cell) string { return filepath.Join(f.dir, "runs", c.ID+".json") }

// load reads a run that has ended; false: there is none.
func (f folder) load(c Cell) (Run, bool, error) {
	text, err := os.ReadFile(f.path(c))
	if errors.Is(err, fs.ErrNotExist) {
		return Run{}, false, nil
	}
	var r Run
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, false, fmt.Errorf("read run %s: %w", c.ID, err)
	}
	return r, true, nil
}

func (f folder) save(r Run) error { return writeJSON(f.path(r.Cell), r) }

// tables writes those tables that have rows.
func (f folder) tables(tables []records.Table) ([]string, error) {
	var out []string
	for _, t := range tables {
		at := filepath.Join(f.dir, string(t.Format)+".csv")
		if len(t.Rows) == 0 {
			continue
		}
		err := atomically(at, func(file *os.File) error { return records.Write(file, t) })
		if err != nil {
			return out, err
		}
		out = append(out, at)
	}
	return out, nil
}

func writeJSON(path string, v any) error {
	return atomically(path, func(f *os.File) error {
		e := json.NewEncoder(f)
		e.SetIndent("", " ")
		return e.Encode(v)
	})
}

// atomically makes a file whole or not at all: written beside, then renamed.
func atomically(path string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone where it was renamed
	err = write(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
