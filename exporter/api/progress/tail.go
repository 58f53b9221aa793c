package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watch reads whenever the file may have grown, and once more at the end.
func watch(ctx context.Context, cfg Config, t *tail) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ticker := time.NewTicker(cfg.Poll)
	defer ticker.Stop()
	// Without a watcher (limits, network file systems) the ticks alone do the work.
	touched, err := Touched(ctx, cfg.Path)
	if err != nil {
		cfg.Logger.Debug("no notifications, polling instead", "path", cfg.Path, "err", err)
	}
	for {
		if err := t.read(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			err := t.read()
			if err == nil && cfg.Whole != nil && cfg.Whole() {
				t.lines.feed([]byte("\n"), t.seen)
			}
			return err
		case <-ticker.C:
		case <-touched:
		}
	}
}

// Touched sends when a file is written, made or touched, until ctx ends. One answer may stand for
// several events, and for events that were lost.
func Touched(ctx context.Context, path string) (<-chan struct{}, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", path, err)
	}
	// The directory is watched, since the file may not exist yet.
	if err := w.Add(filepath.Dir(path)); err != nil {
		return nil, errors.Join(fmt.Errorf("watch %s: %w", path, err), w.Close())
	}
	out := make(chan struct{}, 1)
	go func() {
		defer func() { _ = w.Close() }() // nothing was written through it
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-w.Events:
				if filepath.Base(e.Name) != filepath.Base(path) {
					continue
				}
			case <-w.Errors: //nolint:errcheck // an overflow: something happened
			}
			select {
			case out <- struct{}{}:
			default: // one look answers both
			}
		}
	}()
	return out, nil
}

type tail struct {
	path   string
	offset int64
	file   *os.File
	lines  lines
	seen   func(line []byte)
	buf    [32 << 10]byte
}

// read takes in everything that is there now. A file that does not exist yet, or
// may not be read yet, is not an error: there is nothing to read.
func (t *tail) read() error {
	for {
		if t.file == nil {
			f, err := os.Open(t.path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("progress: open the output: %w", err)
			}
			t.file = f
		}
		if err := t.take(); err != nil {
			return fmt.Errorf("progress: read %s: %w", t.path, err)
		}
		if !t.replaced() {
			return nil
		}
		t.close()
		t.offset = 0
		t.lines.reset()
	}
}

func (t *tail) take() error {
	if st, err := t.file.Stat(); err == nil && st.Mode().IsRegular() && st.Size() < t.offset {
		t.offset = 0
		t.lines.reset()
	}
	for {
		n, err := t.file.ReadAt(t.buf[:], t.offset)
		t.offset += int64(n)
		t.lines.feed(t.buf[:n], t.seen)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// replaced reports whether the path now leads to another file.
func (t *tail) replaced() bool {
	now, err := os.Stat(t.path)
	if err != nil {
		return false // gone for the moment: what is open is still the job's
	}
	was, err := t.file.Stat()
	return err == nil && !os.SameFile(was, now)
}

func (t *tail) close() {
	if t.file != nil {
		_ = t.file.Close() // only read
		t.file = nil
	}
}

// maxLine bounds what is kept of one line. The rest of a longer one is skipped:
// no progress line is that long, and a binary file must not fill the memory.
const maxLine = 64 << 10

// lines cuts a stream into lines. Carriage returns end a line too, since progress
// bars rewrite theirs.
type lines struct {
	partial []byte
	over    bool // the present line was longer than maxLine
}

// feed calls f for each line that is finished by p. The bytes are only valid
// during the call.
func (l *lines) feed(p []byte, f func(line []byte)) {
	start := 0
	for i, b := range p {
		if b != '\n' && b != '\r' {
			continue
		}
		l.keep(p[start:i])
		if !l.over && len(l.partial) > 0 {
			f(l.partial)
		}
		l.reset()
		start = i + 1
	}
	l.keep(p[start:])
}

func (l *lines) keep(p []byte) {
	if l.over || len(l.partial)+len(p) > maxLine {
		l.over, l.partial = true, l.partial[:0]
		return
	}
	l.partial = append(l.partial, p...)
}

func (l *lines) reset() { l.partial, l.over = l.partial[:0], false }
