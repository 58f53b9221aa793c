package slurm

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

const listenStep = "pitchpipe-listen"

// arrival is how long a step that was started may take to be seen.
const arrival = 30 * time.Second

var _ driver.Listener = (*Driver)(nil)

// Listen starts the listener as its own step inside the job, which overlaps
// the job's other steps, counts among its processes and ends with it. Which
// attempts have one is durable; where that is old news, Slurm is asked for the
// step, so that a listener that died is started again.
func (d *Driver) Listen(ctx context.Context, id driver.JobID, attempt int, p driver.Progress) error {
	if d.cfg.Everyone {
		return nil // the site's TaskProlog has started it
	}
	launcher, ok := d.cfg.Commands.(command.Launcher)
	if len(d.cfg.Listener) == 0 || !ok || p.Pattern == "" {
		return fmt.Errorf("listen: job %s: no listener: %w", id, driver.ErrUnsupported)
	}
	defer d.hold(id)()
	j, r, err := d.opened(ctx, id)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if j.State != "RUNNING" || j.Restarts+1 != attempt {
		return fmt.Errorf("listen: job %s: attempt %d does not run: %w", id, attempt, driver.ErrConflict)
	}
	again := r.Listening != nil && r.Listening.Attempt == attempt
	if again {
		steps, err := command.Ask(ctx, d.cfg.Commands, "squeue", "-h", "--steps", "-j", j.ID, "-o", "%j")
		if err != nil {
			return fmt.Errorf("listen: %w", err)
		}
		if slices.Contains(strings.Fields(string(steps)), listenStep) || time.Since(r.Listening.At) < arrival {
			return nil
		}
	}
	// Durable first: a second listener would report each epoch twice.
	r.Listening = &Listening{Attempt: attempt, At: time.Now()}
	if err := d.write(r, "listening"); err != nil {
		return err
	}
	args := arguments{
		"--jobid=" + j.ID, "--overlap", "--immediate=20", "--nodes=1", "--ntasks=1", "--cpus-per-task=1", "--mem=0", "--cpu-bind=none",
		"--job-name=" + listenStep, "--chdir=" + j.WorkDir, "--input=none", "--output=none", "--error=none", "--quiet",
	}
	args = append(append(args, d.cfg.Listener...), "--pattern", p.Pattern)
	file := cmp.Or(p.File, j.StdOut)
	if !filepath.IsAbs(file) {
		file = filepath.Join(j.WorkDir, file)
	}
	// What is already there would be reported as of now. It is read only if it is
	// known to be this attempt's, and not reported yet.
	offset, err := d.outputs.Size(file, int(j.UID))
	if err != nil {
		return fmt.Errorf("listen: job %s: %w", id, err)
	}
	if p.File == "" && !again {
		offset = d.began(j, r, attempt)
	}
	args = append(args, "--offset", strconv.FormatInt(offset, 10), "--file", file)
	args.when(p.Total > 0, "--total", strconv.Itoa(p.Total))
	call := command.Call{Name: "srun", Args: args, Effect: true}
	d.cfg.Logger.Info("slurm", "command", call.String())
	if err := launcher.Launch(call); err != nil {
		return fmt.Errorf("listen: job %s: %w", id, err)
	}
	return nil
}

// maxMark is how much of an output is kept to know the place again.
const maxMark = 64

// mark is where the output ends before the given attempt. One that cannot be seen is empty.
func (d *Driver) mark(j parse.Job, attempt int) *Mark {
	size, _ := d.outputs.Size(j.StdOut, int(j.UID))
	from := max(0, size-maxMark)
	return &Mark{Attempt: attempt, Offset: size, Tail: d.piece(j, from, size-from)}
}

func (d *Driver) piece(j parse.Job, from, n int64) []byte {
	if d.cfg.Everyone || n <= 0 {
		return nil
	}
	data, _ := d.outputs.Piece(j.StdOut, int(j.UID), from, n) // what cannot be read is not that place
	return data
}

// began is the byte of the output at which the attempt began. The job chooses
// whether Slurm appends to an output or truncates it, so the place is known by what
// precedes it. Where it is not known, what is there already is passed over: epochs
// of an earlier attempt must not be reported again.
func (d *Driver) began(j parse.Job, r *Record, attempt int) int64 {
	switch {
	case attempt == 1 && r.Output == nil: // first seen when it ran: Slurm's own way is to truncate
		return 0
	case r.Output == nil || r.Output.Attempt != attempt:
		return d.mark(j, attempt).Offset
	}
	m := r.Output
	if n := int64(len(m.Tail)); !bytes.Equal(m.Tail, d.piece(j, m.Offset-n, n)) {
		return 0
	}
	return m.Offset
}

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
	if d.cfg.Everyone {
		return nil, fmt.Errorf("logs: job %s: its output is not this user's to read: %w", id, driver.ErrUnsupported)
	}
	out, err := d.outputs.From(j.StdOut, int(j.UID), offset)
	if err != nil {
		return nil, fmt.Errorf("logs: job %s: %w", id, err)
	}
	return out, nil
}

// maxStart is how long a job that cannot be executed takes to say so.
const maxStart = 10 * time.Second

// neverStarted reports whether slurmstepd could not execute the script. Slurm says
// no more than status 2 for that, and the reason in the job's output.
func (d *Driver) neverStarted(j parse.Job) bool {
	if j.Exit.Exit != 2 || d.cfg.Everyone || j.Ended.Sub(j.Started) > maxStart {
		return false
	}
	data, err := d.outputs.Tail(j.StdErr, int(j.UID), 0)
	return err == nil && regexp.MustCompile(`(?m)^slurmstepd\S*: error: execve\(\): [^\n]*\n\z`).Match(data)
}
