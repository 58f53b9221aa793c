package task

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// log reads a stream while it is written.
type log struct {
	path   string
	follow bool
	over   <-chan struct{} // nothing more is written

	once   sync.Once
	closed chan struct{}

	mu     sync.Mutex
	file   *os.File
	offset int64 // where to begin; negative from the end
	last   bool  // the task was dead at the last look
}

func openLog(path string, offset int64, follow bool, over <-chan struct{}) *log {
	return &log{path: path, offset: offset, follow: follow, over: over, closed: make(chan struct{})}
}

// Read waits, where it follows, until there is more or the task is dead.
func (l *log) Read(p []byte) (int, error) {
	for {
		n, err := l.read(p)
		if n > 0 || err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		if !l.follow || l.last {
			return 0, io.EOF
		}
		select {
		case <-l.closed:
			return 0, io.ErrClosedPipe
		case <-l.over:
			l.last = true // what was written before the end is still read
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (l *log) read(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		return 0, io.ErrClosedPipe
	default:
	}
	if l.file == nil {
		f, err := os.Open(l.path)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		if l.offset < 0 {
			info, err := f.Stat()
			if err != nil {
				return 0, errors.Join(err, f.Close())
			}
			l.offset = max(0, info.Size()+l.offset)
		}
		if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
			return 0, errors.Join(err, f.Close())
		}
		l.file = f
	}
	return l.file.Read(p)
}

// Close ends a Read that waits.
func (l *log) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.file != nil {
			err = l.file.Close()
		}
	})
	return err
}
