package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pitchpipe/controller/evaluate"
	"pitchpipe/driver/durable"
)

// ErrFolder means that the folder cannot be recorded into.
var ErrFolder = errors.New("not a folder for this recording")

const mode = 0o644 // of the files of a recording: plan.json, runs/ID.json, and the tables

// open makes the folder, or checks that it holds the same plan.
func (cfg Config) open(p Plan) error {
	if err := os.MkdirAll(filepath.Join(cfg.Dir, "runs"), 0o755); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	at := filepath.Join(cfg.Dir, "plan.json")
	var there Plan
	switch err := durable.ReadJSON(at, &there); {
	case errors.Is(err, fs.ErrNotExist):
		return durable.WriteJSON(at, p, mode)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	old, err := json.Marshal(there)
	wanted, failed := json.Marshal(p)
	if err != nil || failed != nil || !bytes.Equal(old, wanted) {
		return fmt.Errorf("%w: %s holds the runs of another plan (plan.json): want the same plan, or another folder", ErrFolder, cfg.Dir)
	}
	return nil
}

// path is the file of a run that has ended.
func (cfg Config) path(c Cell) string { return filepath.Join(cfg.Dir, "runs", c.ID+".json") }

func (cfg Config) write(tables []evaluate.Table) ([]string, error) {
	var out []string
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		var text bytes.Buffer
		if err := evaluate.Write(&text, t); err != nil {
			return out, err
		}
		at := filepath.Join(cfg.Dir, string(t.Format)+".csv")
		if err := durable.Write(at, text.Bytes(), mode); err != nil {
			return out, err
		}
		out = append(out, at)
	}
	return out, nil
}
