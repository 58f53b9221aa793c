package state

import (
	"encoding/binary"
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
	// A journal has two slots, which are written in turn, so that one is whole whenever
	// its writer is killed.
	slots = 2
	// slotBytes is the room of each, for some thousands of jobs; the file has holes.
	slotBytes = 4 << 20
	// A slot begins with a magic word, the number of its writing, the length of what
	// follows, and the sum of both and of that.
	magic, headBytes = "ppj1", 24
	// recent is for how long a job that ended is in the journal: Save comes sooner.
	recent = time.Minute
)

// Journal keeps what must not be lost where an exporter is killed: the joules of the jobs
// that run, at each sample. It writes into a file's pages and never waits for the disk, since
// a machine that goes down takes these jobs with it. It belongs to one goroutine.
type Journal struct {
	f      *os.File
	number uint64
}

func journalPath(path string) string { return path + ".journal" }

// OpenJournal opens the journal of the state at path, which Load reads. Close it.
func OpenJournal(path string) (*Journal, error) {
	path = journalPath(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrState, err)
	}
	_, number := newest(f)
	return &Journal{f: f, number: number}, nil
}

// Write puts the state of the jobs that run, and of those that ended just now, in the place
// of the one before the last.
func (j *Journal) Write(s State) error {
	s.Version, s.Idle = version, nil
	s.Jobs = slices.DeleteFunc(slices.Clone(s.Jobs), func(of Job) bool { return !of.Ended.IsZero() && s.At.Sub(of.Ended) > recent })
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if len(data) > slotBytes-headBytes {
		return fmt.Errorf("%w: %d jobs do not fit the journal", ErrState, len(s.Jobs))
	}
	number := j.number + 1
	out := make([]byte, headBytes, headBytes+len(data))
	copy(out, magic)
	binary.LittleEndian.PutUint64(out[8:], number)
	binary.LittleEndian.PutUint32(out[16:], uint32(len(data)))
	binary.LittleEndian.PutUint32(out[20:], sum(out, data))
	if _, err := j.f.WriteAt(append(out, data...), int64(number%slots)*slotBytes); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	j.number = number
	return nil
}

// Close closes the file, which stays.
func (j *Journal) Close() error { return j.f.Close() }

func sum(head, data []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(head[:20]), crc32.IEEETable, data)
}

// readJournal returns the newest state in a journal that is whole.
func readJournal(path string) (State, bool) {
	f, err := os.Open(path)
	if err != nil {
		return State{}, false
	}
	s, number := newest(f)
	return s, f.Close() == nil && number > 0
}

// newest is the state in the slot that was written last and is whole; number 0 = in none.
func newest(f io.ReaderAt) (out State, number uint64) {
	for i := range slots {
		if s, n, ok := readSlot(io.NewSectionReader(f, int64(i)*slotBytes, slotBytes)); ok && n > number {
			out, number = s, n
		}
	}
	return out, number
}

func readSlot(r io.Reader) (s State, number uint64, ok bool) {
	head := make([]byte, headBytes)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(magic)]) != magic {
		return State{}, 0, false
	}
	length := binary.LittleEndian.Uint32(head[16:])
	if length > slotBytes-headBytes {
		return State{}, 0, false
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(r, data); err != nil || binary.LittleEndian.Uint32(head[20:]) != sum(head, data) {
		return State{}, 0, false
	}
	if json.Unmarshal(data, &s) != nil || s.check() != nil {
		return State{}, 0, false
	}
	return s, binary.LittleEndian.Uint64(head[8:]), true
}

// with is a state and what a journal knows better: newer joules of jobs, jobs that began
// since, and those that ended.
func (s State) with(j State) State {
	running := func(of Job) bool { return of.Ended.IsZero() }
	if j.Boot != s.Boot {
		if j.At.Before(s.At) {
			return s // it is of an earlier boot
		}
		s.Jobs, s.Boot = slices.DeleteFunc(s.Jobs, running), j.Boot
	}
	s.Version, s.At = version, j.At
	for _, of := range j.Jobs {
		i := slices.IndexFunc(s.Jobs, of.same)
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

// same reports whether both are of one attempt, whatever its number turned out to be.
func (j Job) same(o Job) bool {
	if j.Job.Manager != o.Job.Manager || j.Job.ID != o.Job.ID {
		return false
	}
	return j.Job.Attempt == o.Job.Attempt || j.Inode != 0 && j.Inode == o.Inode && j.Job.Cgroup == o.Job.Cgroup
}
