package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/hostfs"
)

const version = 1

// State is all jobs that an exporter knows.
type State struct {
	Version int    `json:"version"`
	Boot    string `json:"boot"` // of the machine when it was written
	Jobs    []Job  `json:"jobs"`
	// At is of the sample that it is the state after.
	At time.Time `json:"at,omitzero"`
	// Idle is what the node's parts took without work.
	Idle []energy.Calibration `json:"idle,omitempty"`
}

// Job is one attempt.
type Job struct {
	Job    api.Job            `json:"job"`
	Schema string             `json:"schema"`
	Source string             `json:"source"`
	Inode  uint64             `json:"inode,omitempty"` // of Job.Cgroup, by which it is known again; 0 = none
	Joules energy.Joules      `json:"joules"`
	Values map[string]float64 `json:"values"`
	Ended  time.Time          `json:"ended,omitzero"`
	// Budgets are what was said that it may use.
	Budgets api.Budgets `json:"budgets,omitempty"`
}

// ErrState means that a file is there and is no state.
var ErrState = errors.New("state")

// Boot distinguishes the machine's boots; empty where it does not say.
func Boot(root hostfs.Root) string {
	data, err := hostfs.Read(root.Proc("sys", "kernel", "random", "boot_id"))
	if err != nil {
		return ""
	}
	return string(data)
}

// Load reads a state, and what its journal knows better. A file that is not there is an
// empty one. Where there is an error, what the journal knows is returned with it.
func Load(path string) (State, error) {
	s, err := load(path)
	if j, ok := readJournal(journalPath(path)); ok {
		s = s.with(j)
	}
	return s, err
}

func load(path string) (State, error) {
	data, err := hostfs.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{Version: version}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrState, err)
	}
	var s State
	if err := json.Unmarshal(data, &s); err != nil {
		return State{}, fmt.Errorf("%w: %s: %w", ErrState, path, err)
	}
	if err := s.check(); err != nil {
		return State{}, fmt.Errorf("%w: %s: %w", ErrState, path, err)
	}
	return s, nil
}

// check reports what is wrong with a state.
func (s State) check() error {
	if s.Version != version {
		return fmt.Errorf("it is of version %d, want %d", s.Version, version)
	}
	for _, j := range s.Jobs {
		const rounding = 1e-3
		if min(j.Joules.Active, j.Joules.Idle, j.Joules.GPU) < -rounding {
			return fmt.Errorf("job %s/%s has joules below 0", j.Job.Manager, j.Job.ID)
		}
	}
	return nil
}

// Aside is where a file that is no state is kept, so that whoever wants to know what was
// in it can look, and the next state does not replace it.
func Aside(path string) string { return path + ".broken" }

// SetAside moves a file that Load refused out of the way of the next Save. One that was
// set aside before is replaced.
func SetAside(path string) (kept string, err error) {
	kept = Aside(path)
	if err := os.Rename(path, kept); err != nil {
		return "", fmt.Errorf("%w: %w", ErrState, err)
	}
	return kept, nil
}

// Save writes a state in the place of the one before.
func Save(path string, s State) error {
	s.Version = version
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrState, err), os.Remove(f.Name()))
	}
	return nil
}
