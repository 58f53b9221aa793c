package sampler

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/window"
)

const stateVersion = 1

// State is what an exporter leaves to the next one: a file that is whole or not there, and
// next to it a newer journal.
type State struct {
	Version int                  `json:"version"`
	Boot    string               `json:"boot"` // of the machine when it was written
	Jobs    []window.Attempt     `json:"jobs"`
	At      time.Time            `json:"at,omitzero"`    // of the last sample
	Idle    []energy.Calibration `json:"idle,omitempty"` // what the node's parts took without work
}

// ErrState means that a file is there but is not a state.
var ErrState = errors.New("state")

// Boot distinguishes the machine's boots; empty where it does not say.
func Boot(root hostfs.Root) string {
	data, _ := hostfs.Read(root.Proc("sys", "kernel", "random", "boot_id")) // not known: empty
	return string(data)
}

// LoadState reads a state and the newer facts of its journal. A file that does not exist is an
// empty state. With an error comes what the journal has.
func LoadState(path string) (State, error) {
	s, err := parseState(hostfs.Read(path))
	if errors.Is(err, fs.ErrNotExist) {
		s, err = State{Version: stateVersion}, nil
	}
	if err != nil {
		s, err = State{}, fmt.Errorf("%w: %s: %w", ErrState, path, err)
	}
	if j, failed := parseState(hostfs.Read(journalPath(path))); failed == nil { // else there is none, or an older exporter's
		s = s.with(j)
	}
	return s, err
}

func parseState(data []byte, err error) (s State, _ error) {
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil && s.Version != stateVersion {
		err = fmt.Errorf("it has version %d, want %d", s.Version, stateVersion)
	}
	for _, j := range s.Jobs {
		const rounding = 1e-3
		if err == nil && min(j.Joules.Active, j.Joules.Idle, j.Joules.GPU) < -rounding {
			err = fmt.Errorf("job %s/%s has joules below 0", j.Job.Manager, j.Job.ID)
		}
	}
	return s, err
}

// SetAside moves a file that LoadState refused out of the way of the next SaveState, and
// replaces one that was set aside before.
func SetAside(path string) (kept string, err error) {
	kept = path + ".broken"
	if err := os.Rename(path, kept); err != nil {
		return "", fmt.Errorf("%w: %w", ErrState, err)
	}
	return kept, nil
}

// SaveState replaces the state at path.
func SaveState(path string, s State) error { return save(path, s, (*os.File).Sync) }

// recent is how long a job that ended is in the journal: SaveState comes sooner.
const recent = time.Minute

// SaveJournal replaces the journal of the state at path, which LoadState reads. It holds what must
// survive the killing of an exporter: the joules of the jobs that run, and of those that ended
// just now, at each sample. It does not wait for the disk, since a machine that goes down takes
// these jobs with it.
func SaveJournal(path string, s State) error {
	s.Idle = nil
	s.Jobs = slices.DeleteFunc(slices.Clone(s.Jobs), func(of window.Attempt) bool { return !of.Ended.IsZero() && s.At.Sub(of.Ended) > recent })
	return save(journalPath(path), s, func(*os.File) error { return nil })
}

func journalPath(path string) string { return path + ".journal" }

func save(path string, s State, settle func(*os.File) error) error {
	s.Version = stateVersion
	data, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o750)
	}
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, settle(f), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrState, err), os.Remove(f.Name()))
	}
	return nil
}

// with adds what a journal knows better: newer joules of jobs, jobs that began since, and
// those that ended.
func (s State) with(j State) State {
	running := func(of window.Attempt) bool { return of.Ended.IsZero() }
	if j.Boot != s.Boot {
		if j.At.Before(s.At) {
			return s // it is of an earlier boot
		}
		s.Jobs, s.Boot = slices.DeleteFunc(s.Jobs, running), j.Boot
	}
	s.Version, s.At = stateVersion, j.At
	for _, of := range j.Jobs {
		i := slices.IndexFunc(s.Jobs, func(o window.Attempt) bool { return sameAttempt(of, o) })
		switch {
		case i < 0:
			s.Jobs = append(s.Jobs, of)
		case running(of) && (!running(s.Jobs[i]) || of.Joules.Total() < s.Jobs[i].Joules.Total()):
			// The state was saved later.
		default:
			s.Jobs[i] = of
		}
	}
	return s
}

// sameAttempt reports whether both are of one attempt, whatever its number turned out to be.
func sameAttempt(j, o window.Attempt) bool {
	return j.Job.Manager == o.Job.Manager && j.Job.ID == o.Job.ID &&
		(j.Job.Attempt == o.Job.Attempt || j.Inode != 0 && j.Inode == o.Inode && j.Job.Cgroup == o.Job.Cgroup)
}
