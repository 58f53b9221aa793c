package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"pitchpipe/controller/evaluate"
	"pitchpipe/driver/durable"
)

// ErrFolder means that the folder cannot be recorded into.
var ErrFolder = errors.New("not a folder for this recording")

// folder is where a recording is kept: plan.json, runs/ID.json, and the tables.
type folder struct{ dir string }

const mode = 0o644 // of the files

// open makes the folder, or checks that it holds the same plan.
func (f folder) open(p Plan) error {
	if err := os.MkdirAll(filepath.Join(f.dir, "runs"), 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	at := filepath.Join(f.dir, "plan.json")
	var there, here Plan
	switch err := durable.ReadJSON(at, &there); {
	case errors.Is(err, fs.ErrNotExist):
		return durable.WriteJSON(at, p, mode)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrFolder, err)
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
	err = durable.ReadJSON(f.path(c), &r)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	return r, err == nil, err
}

func (f folder) save(r Run) error { return durable.WriteJSON(f.path(r.Cell), r, mode) }

func (f folder) write(tables []evaluate.Table) ([]string, error) {
	var out []string
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		var text bytes.Buffer
		if err := evaluate.Write(&text, t); err != nil {
			return out, err
		}
		at := filepath.Join(f.dir, string(t.Format)+".csv")
		if err := durable.Write(at, text.Bytes(), mode); err != nil {
			return out, err
		}
		out = append(out, at)
	}
	return out, nil
}
