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
	if !d.cfg.ReadOutput {
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

// maxStart is how long a job that cannot be executed takes to say so.
const maxStart = 10 * time.Second

// neverStarted reports whether slurmstepd could not execute the script. Slurm says
// no more than status 2 for that, and the reason in the job's output.
func (d *Driver) neverStarted(j parse.Job) bool {
	if j.Exit.Exit != 2 || !d.cfg.ReadOutput || j.Ended.Sub(j.Started) > maxStart {
		return false
	}
	data, err := d.outputs.Tail(j.StdErr, int(j.UID), 0)
	return err == nil && regexp.MustCompile(`(?m)^slurmstepd\S*: error: execve\(\): [^\n]*\n\z`).Match(data)
}
