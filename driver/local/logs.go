package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"syscall"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
)

// Logs returns the job's output from byte offset on, as far as it is written.
func (d *Driver) Logs(_ context.Context, id driver.JobID, offset int64) (io.ReadCloser, error) {
	d.mu.Lock()
	r, err := d.find(id)
	d.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("logs: offset %d: %w", offset, driver.ErrInvalid)
	}
	f, err := r.openOutput()
	if errors.Is(err, os.ErrNotExist) {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	if err != nil {
		return nil, fmt.Errorf("logs: job %s: %w", id, err)
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("logs: job %s: %w", id, err), f.Close())
	}
	return f, nil
}

// openOutput opens the output for reading. The path is the job's own word: where
// this process may read more than the job's user, only a plain file of that user
// will do. Before the first attempt there is no output, whatever lies there.
func (r *record) openOutput() (*os.File, error) {
	if len(r.Job.Attempts) == 0 {
		return nil, os.ErrNotExist
	}
	f, err := os.OpenFile(r.Output, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("output: %w", err), f.Close())
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		err = fmt.Errorf("output %s is no plain file: %w", r.Output, driver.ErrUnsupported)
	case r.User != nil && (!ok || stat.Uid != r.User.UID):
		err = fmt.Errorf("output %s is not the job's own: %w", r.Output, driver.ErrDenied)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// outputSize is how long the output is, 0 where there is none.
func (r *record) outputSize() int64 {
	info, err := os.Stat(r.Output)
	if err != nil {
		return 0
	}
	return info.Size()
}

// saidDone tells whether a whole line of the output from offset on matches.
func (r *record) saidDone(pattern string, offset int64) (bool, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return false, fmt.Errorf("pattern of a saved checkpoint: %w: %w", driver.ErrInvalid, err)
	}
	f, err := r.openOutput()
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	data, err := io.ReadAll(io.NewSectionReader(f, offset, maxTail))
	if err = errors.Join(err, f.Close()); err != nil {
		return false, fmt.Errorf("output: %w", err)
	}
	for line := range bytes.Lines(data) {
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		if whole && re.Match(text) {
			return true, nil
		}
	}
	return false, nil
}

// maxTail bounds what is read to find the line that says "saved".
const maxTail = 16 << 20
