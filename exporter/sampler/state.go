package sampler

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
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
// next to it a newer Journal.
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
	if f, failed := os.Open(journalPath(path)); failed == nil {
		if j, slot := newestSlot(f); slot >= 0 {
			s = s.with(j)
		}
		_ = f.Close() // only read
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
func SaveState(path string, s State) error {
	s.Version = stateVersion
	data, err := json.Marshal(s)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o750)
	}
	var f *os.File
	if err == nil {
		f, err = os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	}
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

const (
	// slotBytes is the size of each of the two slots, for some thousands of jobs; the file has
	// holes.
	slotBytes = 4 << 20
	// recent is how long a job that ended is in the journal: SaveState comes sooner.
	recent = time.Minute
)

// Journal holds what must survive the killing of an exporter: the joules of the jobs that run,
// at each sample. Its two slots are written in turn, so that one is always whole. It never
// waits for the disk, since a machine that goes down takes these jobs with it. It belongs to
// one goroutine.
type Journal struct {
	f    *os.File
	slot int // that is written next
}

func journalPath(path string) string { return path + ".journal" }

// OpenJournal opens the journal of the state at path, which LoadState reads. Close it.
func OpenJournal(path string) (*Journal, error) {
	path = journalPath(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	_, slot := newestSlot(f)
	return &Journal{f: f, slot: (1 - slot) % 2}, nil
}

// Write replaces the older slot with the state of the jobs that run, and of those that ended
// just now.
func (j *Journal) Write(s State) error {
	s.Version, s.Idle = stateVersion, nil
	s.Jobs = slices.DeleteFunc(slices.Clone(s.Jobs), func(of window.Attempt) bool { return !of.Ended.IsZero() && s.At.Sub(of.Ended) > recent })
	data, err := json.Marshal(s)
	line := fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(data), data)
	if err == nil && len(line) > slotBytes {
		err = fmt.Errorf("%d jobs do not fit the journal", len(s.Jobs))
	}
	if err == nil {
		_, err = j.f.WriteAt(line, int64(j.slot)*slotBytes)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	j.slot = 1 - j.slot
	return nil
}

// Close closes the file, which stays.
func (j *Journal) Close() error { return j.f.Close() }

// newestSlot returns the newest state that is whole, and its slot; -1 = none is.
func newestSlot(f io.ReaderAt) (newest State, slot int) {
	slot = -1
	for i := range 2 {
		line, err := bufio.NewReader(io.NewSectionReader(f, int64(i)*slotBytes, slotBytes)).ReadBytes('\n')
		sum, data, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		if err != nil || string(sum) != fmt.Sprintf("%08x", crc32.ChecksumIEEE(data)) {
			continue
		}
		if s, err := parseState(data, nil); err == nil && (slot < 0 || s.At.After(newest.At)) {
			newest, slot = s, i
		}
	}
	return newest, slot
}
