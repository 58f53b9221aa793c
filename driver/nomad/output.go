package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/view"
)

// Listen has the output of a running attempt followed until it ends or the driver is
// closed. Repeated for the same attempt it does nothing.
func (d *Driver) Listen(ctx context.Context, id driver.JobID, attempt int, p driver.Progress) error {
	if d.cfg.Listen == nil {
		return fmt.Errorf("listen to %s: nothing takes the epochs: %w", id, driver.ErrUnsupported)
	}
	release := d.hold(id)
	f, job, err := d.get(ctx, id)
	release()
	if err != nil {
		return fmt.Errorf("listen to %s: %w", id, err)
	}
	a := f.latest()
	if job.State != driver.Running || job.Attempt != attempt || a == nil {
		return fmt.Errorf("listen to attempt %d of %s: it is %s in attempt %d: %w", attempt, id, job.State, job.Attempt, driver.ErrConflict)
	}
	file, err := inside(p.File, f.task)
	if err != nil {
		return fmt.Errorf("listen to %s: %w", id, err)
	}
	d.mu.Lock()
	heard := d.heard[a.ID]
	d.heard[a.ID] = true
	d.mu.Unlock()
	if heard {
		return nil
	}
	in := &follower{life: d.life, d: d, at: f.at, alloc: a.ID, task: f.task, file: file}
	if err := in.open(ctx, false); errors.Is(err, driver.ErrDenied) {
		d.mu.Lock()
		delete(d.heard, a.ID)
		d.mu.Unlock()
		return fmt.Errorf("listen to %s: %w", id, err)
	}
	in.drop()
	in.follow = file == "" && d.followers.Add(1) <= maxFollowers
	var over context.CancelFunc
	in.runs, over = context.WithCancel(d.life)
	d.busy.Go(func() { in.watch(id, over) })
	d.busy.Go(func() {
		defer over()
		if file == "" {
			defer d.followers.Add(-1)
		}
		err := d.cfg.Listen(d.life, a.NodeName, a.ID+"."+f.task, p, in)
		in.drop()
		if err != nil && d.life.Err() == nil {
			d.cfg.Logger.Warn("the epochs of a job are not heard any more", "job", string(id), "attempt", attempt, "error", err)
		}
		d.mu.Lock()
		delete(d.heard, a.ID) // it is over, or the next call tries again
		d.mu.Unlock()
	})
	return nil
}

// inside is the place of a progress file in the allocation's folder: what a task calls
// local/x, or alloc/x.
func inside(file, task string) (string, error) {
	if file == "" {
		return "", nil
	}
	clean := path.Clean(strings.NewReplacer("${NOMAD_TASK_DIR}", "local", "${NOMAD_ALLOC_DIR}", "alloc").Replace(file))
	switch {
	case path.IsAbs(clean), strings.HasPrefix(clean, ".."), strings.Contains(clean, "$"):
		return "", fmt.Errorf("progress file %s: Nomad shows files of the allocation only: want local/... or alloc/...: %w", file, driver.ErrUnsupported)
	case strings.HasPrefix(clean, "alloc/"):
		return clean, nil
	}
	return path.Join(task, clean), nil
}

// maxFollowers is how many outputs are followed by a stream each. An agent has a limit
// of 100 connections for each address; what is beyond is asked for now and then.
const maxFollowers = 50

// Between two questions of a follower, after a stream broke and without a stream, and how often
// it may fail to read what an allocation left that is over.
const (
	between  = 500 * time.Millisecond
	polling  = 5 * time.Second
	attempts = 120
)

// follower reads an output while it grows, until its allocation is over. A stream that
// breaks is taken up where it broke. Nomad does not end one when its task ends.
type follower struct {
	life   context.Context //nolint:containedctx // of the driver: io.Reader has none
	runs   context.Context //nolint:containedctx // ends when the allocation is over: what is there is all
	d      *Driver
	at     where
	alloc  string
	task   string
	file   string // empty: the standard output
	follow bool   // by a stream
	from   int64
	failed int           // to read what is left
	in     io.ReadCloser // nil: none is being read
}

// watch waits until the allocation is over, and ends the stream then.
func (f *follower) watch(id driver.JobID, over context.CancelFunc) {
	w := f.d.informer.watchers.Subscribe()
	defer w.Leave()
	defer over()
	for f.runs.Err() == nil && !f.isOver(id) {
		w.Take()
		select {
		case <-f.runs.Done():
		case <-w.Wake:
		case <-time.After(f.d.cfg.Resync):
		}
	}
}

func (f *follower) isOver(id driver.JobID) bool {
	defer f.d.hold(id)()
	facts, _, err := f.d.snapshot(f.runs, id)
	if err != nil {
		return errors.Is(err, driver.ErrNotFound)
	}
	a := facts.alloc(f.alloc)
	return a == nil || view.Over(a)
}

// Read reads on, and waits for what is not written yet.
func (f *follower) Read(p []byte) (int, error) {
	for {
		last := f.runs.Err() != nil
		if err := f.life.Err(); err != nil {
			return 0, err
		}
		n, err := f.read(p, last)
		if n > 0 {
			return n, nil
		}
		switch ended := errors.Is(err, io.EOF) || errors.Is(err, driver.ErrNotFound); {
		case last && ended:
			return 0, io.EOF
		case err == nil, ended, f.life.Err() != nil:
		case !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrUnknown), f.failed == attempts:
			return 0, err
		case last:
			f.failed++
		}
		wait, until := polling, f.runs
		if last || f.follow { // not long where the allocation is over
			wait, until = between, f.life
		}
		_ = driver.Pause(until, wait) // both are looked at above
	}
}

// read reads from the stream, or from a new one.
func (f *follower) read(p []byte, last bool) (int, error) {
	if f.in == nil {
		ctx := f.runs
		if last { // it has all that is there, and ends
			ctx = f.life
		}
		if err := f.open(ctx, f.follow && !last); err != nil {
			return 0, err
		}
	}
	n, err := f.in.Read(p)
	f.from += int64(n)
	if err != nil {
		if f.drop(); !errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: %w", driver.ErrTransient, err) // it is taken up again
		}
	}
	return n, err
}

// open reads on from where it was, and a file that has become shorter from its beginning.
func (f *follower) open(ctx context.Context, follow bool) (err error) {
	if f.file == "" {
		f.in, err = f.d.c.output(ctx, f.at, f.alloc, f.task, stdout, f.from, follow)
		return err
	}
	var info api.AllocFileInfo
	if err := f.d.c.show(ctx, f.at, "stat", f.alloc, f.file, &info); err != nil {
		return err
	}
	if info.Size < f.from {
		f.from = 0
	}
	if info.Size == f.from {
		return io.EOF
	}
	f.in, err = f.d.c.part(ctx, f.at, f.alloc, f.file, f.from, info.Size-f.from)
	return err
}

// drop forgets a stream that has ended.
func (f *follower) drop() {
	if f.in != nil {
		_ = f.in.Close() // it has ended
		f.in = nil
	}
}

// Logs returns what the job's attempts wrote to their standard output, one after the other,
// from byte offset on, as far as it is written, and after that of an attempt that is over its
// standard error. What Nomad has rotated away or collected is missing.
func (d *Driver) Logs(ctx context.Context, id driver.JobID, offset int64) (io.ReadCloser, error) {
	if offset < 0 {
		return nil, fmt.Errorf("logs of %s: offset %d: %w", id, offset, driver.ErrInvalid)
	}
	release := d.hold(id)
	f, _, err := d.snapshot(ctx, id)
	release()
	if err != nil {
		return nil, fmt.Errorf("logs of %s: %w", id, err)
	}
	all := &joined{}
	var readers []io.Reader
	for _, a := range f.allocs {
		// What runs for a moment before Nomad's servers know of it is not an attempt yet.
		if f.rec != nil && slices.Contains(f.rec.Ignored, a.ID) || view.TaskOf(a, f.task).Began.IsZero() {
			continue
		}
		for _, stream := range []string{stdout, "stderr"} {
			if stream != stdout && !view.Over(a) { // the offsets would change
				continue
			}
			if offset > 0 {
				size, err := d.outputSize(ctx, f.at, a.ID, f.task, stream)
				if err != nil && !gone(a, err) {
					return nil, errors.Join(fmt.Errorf("logs of %s: %w", id, err), all.Close())
				}
				if offset >= size {
					offset -= size
					continue
				}
			}
			out, err := d.c.output(ctx, f.at, a.ID, f.task, stream, offset, false)
			offset = 0
			switch {
			case err == nil:
				all.parts, readers = append(all.parts, out), append(readers, out)
			case !gone(a, err):
				return nil, errors.Join(fmt.Errorf("logs of %s: %w", id, err), all.Close())
			}
		}
	}
	all.Reader = io.MultiReader(readers...)
	return all, nil
}

// gone reports whether there is no output of an allocation, or its node may be gone for good.
func gone(a *api.AllocationListStub, err error) bool {
	return errors.Is(err, driver.ErrNotFound) || view.Over(a) && strings.Contains(err.Error(), noPath)
}

// joined reads several outputs as one.
type joined struct {
	io.Reader
	parts []io.ReadCloser
}

func (j *joined) Close() (err error) {
	for _, p := range j.parts {
		err = errors.Join(err, p.Close())
	}
	return err
}

// stdout is the stream that has a job's epochs.
const stdout = "stdout"

// output reads a stream of a task from an offset on.
func (c cluster) output(ctx context.Context, w where, alloc, task, stream string, offset int64, follow bool) (io.ReadCloser, error) {
	return c.open(ctx, w, "logs", alloc, map[string]string{
		"origin": "start", "offset": strconv.FormatInt(offset, 10), "plain": "true", "follow": strconv.FormatBool(follow), "task": task, "type": stream,
	})
}

// outputSize is how long a stream of a task is.
func (d *Driver) outputSize(ctx context.Context, at where, alloc, task, stream string) (size int64, err error) {
	var files []*api.AllocFileInfo
	if err := d.c.show(ctx, at, "ls", alloc, "alloc/logs", &files); err != nil && !errors.Is(err, driver.ErrNotFound) {
		return 0, err
	}
	for _, f := range files {
		rest, ok := strings.CutPrefix(f.Name, task+"."+stream+".")
		if _, err := strconv.Atoi(rest); ok && err == nil {
			size += f.Size
		}
	}
	return size, nil
}

// open reads what an allocation wrote, and show what is known of it. They are
// driver.ErrNotFound where there is none yet or no more; but of a file that is not there open
// reads the error as if it were its text.
func (c cluster) open(ctx context.Context, w where, kind, alloc string, params map[string]string) (io.ReadCloser, error) {
	q := query(ctx, w.namespace)
	q.Params = params
	in, err := c.api.Raw().Response("/v1/client/fs/"+kind+"/"+url.PathEscape(alloc), q)
	err = asked(kind+" of "+alloc, readFS, w.namespace, err)
	for _, text := range []string{"not started yet", "no such file", "log entry for task", "state for allocation", "Unknown allocation"} {
		if err != nil && strings.Contains(err.Error(), text) {
			return nil, fmt.Errorf("%w: %w", driver.ErrNotFound, err)
		}
	}
	return in, err
}

func (c cluster) show(ctx context.Context, w where, kind, alloc, path string, out any) error {
	in, err := c.open(ctx, w, kind, alloc, map[string]string{"path": path})
	if err != nil {
		return err
	}
	return asked(kind+" of "+alloc, readFS, w.namespace, errors.Join(json.NewDecoder(in).Decode(out), in.Close()))
}

// part reads a part of a file.
func (c cluster) part(ctx context.Context, w where, alloc, path string, offset, size int64) (io.ReadCloser, error) {
	return c.open(ctx, w, "readat", alloc, map[string]string{"path": path, "offset": strconv.FormatInt(offset, 10), "limit": strconv.FormatInt(size, 10)})
}
