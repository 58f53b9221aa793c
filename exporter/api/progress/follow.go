package progress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/fsnotify/fsnotify"

	"pitchpipe/exporter/api"
)

// Config says what to follow. Path is required for Follow, and Pattern or Done or both.
type Config struct {
	Path    string         // the job's output; it need not exist yet; of no use to Read
	Offset  int64          // where to begin, in bytes: what was there before belongs to earlier attempts; of no use to Read
	Pattern *regexp.Regexp // named groups epoch, total, loss, quality; nil = no epochs are reported
	Done    *regexp.Regexp // of a line that says that the job saved a checkpoint; nil = none says so
	Total   int            // epochs in all where no line says it, 0 = unknown

	Poll   time.Duration // how often to look where no notification comes, 0 = 100 ms
	Drain  time.Duration // how long to go on delivering after the end, 0 = 3 s
	Logger *slog.Logger  // nil = silent
}

// Follow reads the file as it grows and calls report for each line that matches
// Pattern, Done or both, until ctx ends; then it reads what is there, delivers it, and returns. A report
// that fails is tried again until Drain after the end, unless the exporter denied
// it or called it invalid; what could not be delivered is the error. A file that
// shrinks or is replaced is read from its beginning.
func Follow(ctx context.Context, cfg Config, report func(context.Context, api.Report) error) error {
	heard, err := cfg.hearer()
	if err != nil {
		return err
	}
	if cfg.Path == "" {
		return errors.New("progress: no file to follow")
	}
	cfg = cfg.filled()
	return delivering(ctx, cfg, newOutbox(cfg.Logger, cfg.Poll, report), func(put func(api.Report)) error {
		t := &tail{path: cfg.Path, offset: max(cfg.Offset, 0), seen: func(line []byte) {
			for _, r := range heard(line) {
				r.Time = time.Now()
				put(r)
			}
		}}
		defer t.close()
		return watch(ctx, cfg, t)
	})
}

func (c Config) filled() Config {
	if c.Poll <= 0 {
		c.Poll = 100 * time.Millisecond
	}
	if c.Drain <= 0 {
		c.Drain = 3 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// delivering reads, delivers what was read beside that, and goes on delivering for a
// while when the reading has ended.
func delivering(ctx context.Context, cfg Config, out *outbox, read func(put func(api.Report)) error) error {
	delivered := make(chan error, 1)
	deliver, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() { delivered <- out.run(deliver) }()
	readErr := read(out.put)
	out.finish()
	end := time.AfterFunc(cfg.Drain, stop)
	defer end.Stop()
	return errors.Join(readErr, <-delivered)
}

// hearer returns what reads one line.
func (c Config) hearer() (func(line []byte) []api.Report, error) {
	var m *Matcher
	if c.Pattern != nil || c.Done == nil {
		var err error
		if m, err = NewMatcher(c.Pattern, c.Total); err != nil {
			return nil, err
		}
	}
	return func(line []byte) []api.Report {
		var out []api.Report
		if m != nil {
			if r, ok := m.Match(string(line)); ok {
				out = append(out, r)
			}
		}
		if c.Done != nil && c.Done.Match(line) {
			out = append(out, api.Report{Saved: true})
		}
		return out
	}, nil
}

// watch reads whenever the file may have grown, and once more at the end.
func watch(ctx context.Context, cfg Config, t *tail) error {
	ticker := time.NewTicker(cfg.Poll)
	defer ticker.Stop()
	var events chan fsnotify.Event
	var faults chan error
	// The directory is watched, since the file may not exist yet. Without a
	// watcher (limits, network file systems) the ticks alone do the work.
	if w, err := fsnotify.NewWatcher(); err == nil {
		defer func() { _ = w.Close() }() // nothing was written through it
		if err := w.Add(filepath.Dir(cfg.Path)); err == nil {
			events, faults = w.Events, w.Errors
		} else {
			cfg.Logger.Debug("no notifications, polling instead", "path", cfg.Path, "err", err)
		}
	}
	for {
		if err := t.read(); err != nil {
			return err
		}
		for relevant := false; !relevant; {
			select {
			case <-ctx.Done():
				return t.read()
			case <-ticker.C:
				relevant = true
			case e, ok := <-events:
				if !ok {
					events = nil
				}
				relevant = e.Name == "" || filepath.Base(e.Name) == filepath.Base(cfg.Path)
			case _, ok := <-faults:
				if !ok {
					faults = nil
				}
				relevant = true // an overflow: look
			}
		}
	}
}

// tail is the file being followed.
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
