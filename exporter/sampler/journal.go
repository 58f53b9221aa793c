package sampler

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// slotBytes is the size of each of the two slots, for some thousands of jobs; the file has
	// holes.
	slotBytes = 4 << 20
	// recent is for how long a job that ended is in the journal: SaveState comes sooner.
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
	s.Jobs = slices.DeleteFunc(slices.Clone(s.Jobs), func(of SavedJob) bool { return !of.Ended.IsZero() && s.At.Sub(of.Ended) > recent })
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
