package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Log is a file of JSON lines that is never longer than Max bytes: the line that would not
// fit begins a new one, and the old one becomes Path.1, that one Path.2, and so on to
// Path.Keep. The file may be moved away at any time too.
type Log struct {
	Path string
	Max  int64
	Keep int

	mu sync.Mutex
}

// An audit takes at most auditBytes of the disk, and five times that with the old files.
const (
	auditBytes = 64 << 20
	auditKeep  = 4
)

// OpenAudit returns the log of a program's effects in its folder of state. It creates the
// file where there is none, so that what cannot be written down is known before anything is
// done.
func OpenAudit(dir string) (*Log, error) {
	l := &Log{Path: filepath.Join(dir, "audit.jsonl"), Max: auditBytes, Keep: auditKeep}
	f, err := l.open()
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return l, f.Close() //nolint:wrapcheck // nothing was written
}

func (l *Log) open() (*os.File, error) {
	return os.OpenFile(l.Path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// Append adds a line. With sync it is on the disk, and so is the file's name, when it returns.
func (l *Log) Append(v any, sync bool) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding a line of %s: %w", l.Path, err)
	}
	line = append(line, '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if info, err := os.Stat(l.Path); err == nil && info.Size() > 0 && info.Size()+int64(len(line)) > l.Max {
		if err := l.rotate(); err != nil {
			return fmt.Errorf("rotating %s: %w", l.Path, err)
		}
	}
	f, err := l.open()
	if err != nil {
		return fmt.Errorf("appending to %s: %w", l.Path, err)
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.Write(line)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err != nil && info != nil { // a part of a line would spoil the next one
		err = errors.Join(err, f.Truncate(info.Size()))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("appending to %s: %w", l.Path, err)
	}
	if sync && info.Size() == 0 {
		return SyncDir(filepath.Dir(l.Path))
	}
	return nil
}

// rotate shifts the files up to the first number that is free, so that it can be repeated
// after a crash in between: each step leaves every line but those of the oldest file.
func (l *Log) rotate() error {
	name := func(n int) string {
		if n == 0 {
			return l.Path
		}
		return fmt.Sprintf("%s.%d", l.Path, n)
	}
	free := 1
	for ; free < l.Keep; free++ {
		if _, err := os.Lstat(name(free)); errors.Is(err, os.ErrNotExist) {
			break
		}
	}
	for n := free; n > 0; n-- {
		if err := os.Rename(name(n-1), name(n)); err != nil {
			return err
		}
	}
	return SyncDir(filepath.Dir(l.Path))
}
