package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"regexp"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
)

// Logs returns the job's output from byte offset on, as far as it is written and
// this machine sees it.
func (d *Driver) Logs(ctx context.Context, id driver.JobID, offset int64) (io.ReadCloser, error) {
	j, err := d.read(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("logs: offset %d: %w", offset, driver.ErrInvalid)
	}
	if !*d.cfg.ReadOutput {
		return nil, fmt.Errorf("logs: job %s: its output is not this user's to read: %w", id, driver.ErrUnsupported)
	}
	f, err := d.openOutput(j.StdOut, j.User)
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

// openOutput opens a file that the job names: only a plain file of the job's user
// will do.
func (d *Driver) openOutput(path, name string) (*os.File, error) {
	if path == "" {
		return nil, os.ErrNotExist
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("output: %w", err), f.Close())
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch owner, lookup := account(name); {
	case !info.Mode().IsRegular():
		err = fmt.Errorf("output %s is no plain file: %w", path, driver.ErrUnsupported)
	case lookup != nil:
		err = fmt.Errorf("output %s: %w: %w", path, driver.ErrTransient, lookup)
	case !ok || strconv.FormatUint(uint64(stat.Uid), 10) != owner.Uid:
		err = fmt.Errorf("output %s is not the job's own: %w", path, driver.ErrDenied)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// account is a user of this machine. A static program reads /etc/passwd alone, so that
// of a user whom a directory service knows it knows itself.
func account(name string) (*user.User, error) {
	if self, err := user.Current(); err == nil && self.Username == name {
		return self, nil
	}
	return user.Lookup(name)
}

// outputSize is how long the output is, 0 where there is none.
func (d *Driver) outputSize(j parse.Job) int64 { return fileSize(j.StdOut) }

// fileSize is how long a file is, 0 where there is none or it cannot be seen.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// maxTail bounds what is read of an output.
const maxTail = 16 << 20

// saidDone tells whether a whole line of the output from offset on matches.
func (d *Driver) saidDone(j parse.Job, pattern string, offset int64) (bool, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return false, fmt.Errorf("pattern of a saved checkpoint: %w: %w", driver.ErrInvalid, err)
	}
	data, err := d.tail(j.StdOut, j.User, offset)
	if err != nil {
		return false, err
	}
	for line := range bytes.Lines(data) {
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		if whole && re.Match(text) {
			return true, nil
		}
	}
	return false, nil
}

func (d *Driver) tail(path, name string, offset int64) ([]byte, error) {
	f, err := d.openOutput(path, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.NewSectionReader(f, offset, maxTail))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("output: %w", err)
	}
	return data, nil
}

// neverStarted tells whether slurmstepd could not execute the script. Slurm says
// no more than status 2 for that, and the reason in the job's output.
func (d *Driver) neverStarted(j parse.Job) bool {
	if j.Exit.Exit != 2 || !*d.cfg.ReadOutput || j.Ended.Sub(j.Started) > maxStart {
		return false
	}
	data, err := d.tail(j.StdErr, j.User, 0)
	return err == nil && regexp.MustCompile(`(?m)^slurmstepd\S*: error: execve\(\): [^\n]*\n\z`).Match(data)
}
