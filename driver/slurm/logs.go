package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"

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
	f, err := d.outputs.Open(j.StdOut, int(j.UID))
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

// outputSize is how long a file of the job is, 0 where there is none or it cannot be seen.
func (d *Driver) outputSize(j parse.Job, path string) (int64, error) {
	return d.outputs.Size(path, int(j.UID))
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
	return d.outputs.Tail(path, int(j.UID), offset)
}

// maxStart is how long a job that cannot be executed takes to say so.
const maxStart = 10 * time.Second

// neverStarted reports whether slurmstepd could not execute the script. Slurm says
// no more than status 2 for that, and the reason in the job's output.
func (d *Driver) neverStarted(j parse.Job) bool {
	if j.Exit.Exit != 2 || !*d.cfg.ReadOutput || j.Ended.Sub(j.Started) > maxStart {
		return false
	}
	data, err := d.tail(j, j.StdErr, 0)
	return err == nil && regexp.MustCompile(`(?m)^slurmstepd\S*: error: execve\(\): [^\n]*\n\z`).Match(data)
}
