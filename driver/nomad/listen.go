package nomad

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/view"
)

// Listen has the output of a running attempt followed until it ends or the driver is
// closed. Repeated for the same attempt it does nothing.
func (d *Driver) Listen(ctx context.Context, id driver.JobID, attempt int, p driver.Progress) error {
	if d.cfg.Listen == nil {
		return fmt.Errorf("listen to %s: nobody is there to be told: %w", id, driver.ErrUnsupported)
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
	in := &follower{ctx: d.life, d: d, at: f.at, alloc: a.ID, task: f.task, file: file}
	d.busy.Go(func() {
		err := d.cfg.Listen(d.life, a.NodeName, a.ID+"."+f.task, p, in)
		if err = errors.Join(err, in.Close()); err != nil && d.life.Err() == nil {
			d.cfg.Logger.Warn("nobody hears the epochs of a job any more", "job", string(id), "attempt", attempt, "error", err)
			d.mu.Lock()
			delete(d.heard, a.ID) // whoever asks next tries again
			d.mu.Unlock()
		}
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

// follower reads an output while it grows, until its allocation is over. A stream that
// breaks is taken up where it broke.
type follower struct {
	ctx   context.Context //nolint:containedctx // of the driver: io.Reader has none
	d     *Driver
	at    where
	alloc string
	task  string
	file  string // empty: the standard output

	from int64
	in   io.ReadCloser
	last bool // the allocation is over: what is there now is all
}

// between is how long a follower waits before it asks again.
const between = 500 * time.Millisecond

func (f *follower) Read(p []byte) (int, error) {
	for {
		if err := f.ctx.Err(); err != nil {
			return 0, err
		}
		if f.in == nil {
			if err := f.open(); err != nil {
				if !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrNotFound) {
					return 0, err
				}
				if f.last {
					return 0, io.EOF
				}
				f.pause()
				continue
			}
		}
		n, err := f.in.Read(p)
		f.from += int64(n)
		if err != nil {
			_ = f.in.Close() // it has ended
			f.in = nil
		}
		if n > 0 {
			return n, nil
		}
		if err == nil {
			continue
		}
		if f.last && errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		f.pause()
	}
}

// pause waits, and looks whether the allocation is over.
func (f *follower) pause() {
	sleep(f.ctx, between)
	a, _, err := f.d.c.api.Allocations().Info(f.alloc, query(f.ctx, f.at.namespace))
	err = asked("allocation "+f.alloc, err)
	f.last = errors.Is(err, driver.ErrNotFound) || err == nil && view.Over(a.Stub())
}

func (f *follower) open() error {
	v := url.Values{"origin": {"start"}, "offset": {strconv.FormatInt(f.from, 10)}, "plain": {"true"}}
	v.Set("follow", strconv.FormatBool(!f.last && f.file == ""))
	kind := "logs"
	if f.file == "" {
		v.Set("task", f.task)
		v.Set("type", "stdout")
	} else {
		kind = "readat"
		v.Set("path", f.file)
		v.Set("limit", strconv.Itoa(1<<20))
	}
	in, err := f.d.c.api.Raw().Response("/v1/client/fs/"+kind+"/"+url.PathEscape(f.alloc)+"?"+v.Encode(), query(f.ctx, f.at.namespace))
	if err = asked("output of "+f.alloc, err); err != nil {
		if absent(err) {
			return fmt.Errorf("%w: %w", driver.ErrNotFound, err)
		}
		return err
	}
	f.in = in
	return nil
}

// Close ends the reading.
func (f *follower) Close() error {
	if f.in == nil {
		return nil
	}
	return f.in.Close()
}
