package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
)

// AnyUser accepts a file of any user: this process may read no more than the job may.
const AnyUser = -1

// Patience is how long a file system may take to answer.
const Patience = 2 * time.Second

// Bounds of what is asked of a user's files: lines are searched in maxTail bytes, and
// maxStuck calls may be under way at once for one user.
const (
	maxTail  = 16 << 20
	maxStuck = 4
)

var errBusy = errors.New("other files of its user are being asked for or do not answer")

// Reader reads outputs. Its zero value is ready.
type Reader struct {
	mu    sync.Mutex
	calls map[int]int // that have not returned, by user
}

// Open opens the file for reading. Its error is fs.ErrNotExist, driver.ErrUnsupported for what
// is not a plain file, driver.ErrDenied for what is not the user's, or driver.ErrTransient
// where the file system does not answer.
func (r *Reader) Open(path string, uid int) (*os.File, error) {
	return within(r, path, uid, func() (*os.File, error) { return open(path, uid) })
}

// From reads the file from offset on, nothing without a file. Its errors are
// those of Open otherwise.
func (r *Reader) From(path string, uid int, offset int64) (io.ReadCloser, error) {
	f, err := r.Open(path, uid)
	if errors.Is(err, os.ErrNotExist) {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Size is how long the file is, 0 where there is none that Open would open. Its error is
// driver.ErrTransient where the file system does not answer.
func (r *Reader) Size(path string, uid int) (n int64, err error) {
	n, err = within(r, path, uid, func() (int64, error) {
		f, err := open(path, uid)
		if err != nil {
			return 0, err
		}
		end, err := f.Seek(0, io.SeekEnd)
		return end, errors.Join(err, f.Close())
	})
	if !errors.Is(err, driver.ErrTransient) {
		err = nil
	}
	return n, err
}

// Piece reads at most n bytes from offset on, none without a file.
func (r *Reader) Piece(path string, uid int, offset, n int64) ([]byte, error) {
	data, err := within(r, path, uid, func() ([]byte, error) {
		f, err := open(path, uid)
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.NewSectionReader(f, offset, n))
		return data, errors.Join(err, f.Close())
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// Tail is Piece up to a generous bound.
func (r *Reader) Tail(path string, uid int, offset int64) ([]byte, error) {
	return r.Piece(path, uid, offset, maxTail)
}

// Says reports whether a whole line of the output matches the pattern of a checkpoint. A carriage
// return ends a line too, since progress bars rewrite theirs.
func Says(data []byte, pattern string) (bool, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return false, fmt.Errorf("pattern of a saved checkpoint: %w: %w", driver.ErrInvalid, err)
	}
	for line := range bytes.Lines(data) {
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		if whole && (re.Match(text) || slices.ContainsFunc(bytes.Split(text, []byte("\r")), re.Match)) {
			return true, nil
		}
	}
	return false, nil
}

// open holds the file without opening it, judges it, and opens what was judged, whatever
// the path names by then.
func open(path string, uid int) (f *os.File, err error) {
	if path == "" {
		return nil, os.ErrNotExist
	}
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unix.Close(fd)) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("no plain file: %w", driver.ErrUnsupported)
	case ofTheKernel(fd):
		return nil, fmt.Errorf("a file of the kernel's: %w", driver.ErrUnsupported)
	case uid != AnyUser && st.Uid != uint32(uid): //nolint:gosec // a user's number
		return nil, fmt.Errorf("not the job's own: %w", driver.ErrDenied)
	}
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_RDONLY|unix.O_NONBLOCK, 0)
}

// ofTheKernel reports whether a file is the kernel's own: some of those in /proc/PID belong to
// the user of that process, and say more to root than to him.
func ofTheKernel(fd int) bool {
	var fs unix.Statfs_t
	err := unix.Fstatfs(fd, &fs)
	return err != nil || slices.Contains([]int64{
		unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC, unix.DEBUGFS_MAGIC,
		unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC,
	}, int64(fs.Type)) //nolint:unconvert // an int32 on some machines
}

// within runs do, which may hang in the kernel, and waits for it no longer than Patience.
// A file that it opens too late is closed.
func within[T any](r *Reader, path string, uid int, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if !r.count(uid, 1) {
		return none, fmt.Errorf("output %s: %w: %w", path, errBusy, driver.ErrTransient)
	}
	done, late := make(chan result), make(chan struct{})
	go func() {
		value, err := do()
		r.count(uid, -1)
		select {
		case done <- result{value, err}:
		case <-late:
			if f, ok := any(value).(io.Closer); ok && err == nil {
				_ = f.Close() // only read
			}
		}
	}()
	select {
	case got := <-done:
		if got.err != nil {
			return none, fmt.Errorf("output %s: %w", path, got.err)
		}
		return got.value, nil
	case <-time.After(Patience):
		close(late)
		return none, fmt.Errorf("output %s: its file system does not answer: %w", path, driver.ErrTransient)
	}
}

// count notes that a call begins or ends, and refuses one too many.
func (r *Reader) count(uid, by int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if by > 0 && r.calls[uid] >= maxStuck {
		return false
	}
	if r.calls == nil {
		r.calls = map[int]int{}
	}
	if r.calls[uid] += by; r.calls[uid] == 0 {
		delete(r.calls, uid)
	}
	return true
}
