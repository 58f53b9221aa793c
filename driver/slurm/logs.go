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

	"pitchpipe/driver"
	"pitchpipe/driver/output"
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
	uid, err := account(j.User)
	if err != nil {
		return nil, fmt.Errorf("logs: job %s: %w", id, err)
	}
	f, err := d.outputs.Open(j.StdOut, uid)
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

// account is the number of a user of this machine. A static program reads /etc/passwd
// alone, so that of a user whom a directory service knows it knows itself.
func account(name string) (int, error) {
	u, err := user.Current()
	if err != nil || u.Username != name {
		u, err = user.Lookup(name)
	}
	if err != nil {
		return 0, fmt.Errorf("user %s: %w: %w", name, driver.ErrTransient, err)
	}
	return strconv.Atoi(u.Uid)
}

// outputSize is how long a file of the job is, 0 where there is none or it cannot be seen.
func (d *Driver) outputSize(j parse.Job, path string) (int64, error) {
	uid, err := account(j.User)
	if err != nil {
		uid = output.AnyUser
	}
	return d.outputs.Size(path, uid)
}

// saidDone reports whether a whole line of the output from offset on matches.
func (d *Driver) saidDone(j parse.Job, pattern string, offset int64) (bool, error) {
	data, err := d.tail(j, j.StdOut, offset)
	if err != nil {
		return false, err
	}
	return output.Says(data, pattern)
}

func (d *Driver) tail(j parse.Job, path string, offset int64) ([]byte, error) {
	uid, err := account(j.User)
	if err != nil {
		return nil, err
	}
	return d.outputs.Tail(path, uid, offset)
}

// neverStarted tells whether slurmstepd could not execute the script. Slurm says
// no more than status 2 for that, and the reason in the job's output.
func (d *Driver) neverStarted(j parse.Job) bool {
	if j.Exit.Exit != 2 || !*d.cfg.ReadOutput || j.Ended.Sub(j.Started) > maxStart {
		return false
	}
	data, err := d.tail(j, j.StdErr, 0)
	return err == nil && regexp.MustCompile(`(?m)^slurmstepd\S*: error: execve\(\): [^\n]*\n\z`).Match(data)
}
