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
	"sync"
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
	in := &follower{ctx: d.life, d: d, at: f.at, alloc: a.ID, task: f.task, file: file, over: make(chan struct{})}
	in.follow = file == "" && d.followers.Add(1) <= maxFollowers
	watching, stop := context.WithCancel(d.life)
	d.busy.Go(func() { in.watch(watching, id) })
	d.busy.Go(func() {
		defer stop()
		if file == "" {
			defer d.followers.Add(-1)
		}
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

// maxFollowers is how many outputs are followed by a stream each. An agent has a limit
// of 100 connections for each address; what is beyond is asked for now and then.
const maxFollowers = 50

// Between two questions of a follower: after a stream broke, and without a stream.
const (
	between = 500 * time.Millisecond
	polling = 5 * time.Second
)

// follower reads an output while it grows, until its allocation is over. A stream that
// breaks is taken up where it broke. Nomad does not end one when its task ends.
type follower struct {
	ctx    context.Context //nolint:containedctx // of the driver: io.Reader has none
	d      *Driver
	at     where
	alloc  string
	task   string
	file   string        // empty: the standard output
	follow bool          // by a stream
	over   chan struct{} // closed: the allocation is over, and what is there is all
	from   int64

	mu sync.Mutex
	in io.ReadCloser
}

// watch waits until the allocation is over and ends the stream then.
func (f *follower) watch(ctx context.Context, id driver.JobID) {
	s, leave := f.d.informer.subscribe()
	defer leave()
	for ctx.Err() == nil {
		if f.isOver(ctx, id) {
			close(f.over)
			f.cut()
			return
		}
		s.take()
		select {
		case <-ctx.Done():
			f.cut()
			return
		case <-s.wake:
		case <-time.After(f.d.cfg.Resync):
		}
	}
}

func (f *follower) isOver(ctx context.Context, id driver.JobID) bool {
	defer f.d.hold(id)()
	facts, _, err := f.d.snapshot(ctx, id)
	if err != nil {
		return errors.Is(err, driver.ErrNotFound)
	}
	a := facts.alloc(f.alloc)
	return a == nil || view.Over(a)
}

// cut ends a stream that is being read.
func (f *follower) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.in != nil {
		_ = f.in.Close() // the reader is told
	}
}

// Read reads on, and waits for what is not written yet.
func (f *follower) Read(p []byte) (int, error) {
	for {
		if err := f.ctx.Err(); err != nil {
			return 0, err
		}
		last := false
		select {
		case <-f.over:
			last = true
		default:
		}
		in, err := f.stream(f.follow && !last)
		if err != nil && !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrNotFound) {
			return 0, err
		}
		if err == nil {
			n, rerr := in.Read(p)
			f.from += int64(n)
			if err = rerr; err != nil {
				f.drop()
			}
			if n > 0 {
				return n, nil
			}
			if err == nil {
				continue
			}
		}
		if last && (errors.Is(err, io.EOF) || errors.Is(err, driver.ErrNotFound)) {
			return 0, io.EOF
		}
		f.pause()
	}
}

// pause waits before the next question, not long where the allocation is over.
func (f *follower) pause() {
	wait := between
	if !f.follow {
		wait = polling
	}
	over := f.over
	select {
	case <-over:
		over, wait = nil, between
	default:
	}
	select {
	case <-f.ctx.Done():
	case <-over:
	case <-time.After(wait):
	}
}

// stream is the one that is being read, or a new one.
func (f *follower) stream(follow bool) (io.ReadCloser, error) {
	f.mu.Lock()
	in := f.in
	f.mu.Unlock()
	if in != nil {
		return in, nil
	}
	v := url.Values{"origin": {"start"}, "offset": {strconv.FormatInt(f.from, 10)}, "plain": {"true"}, "follow": {strconv.FormatBool(follow)}}
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
	if err = asked("output of "+f.alloc, readFS.in(f.at.namespace), err); err != nil {
		if absent(err) {
			return nil, fmt.Errorf("%w: %w", driver.ErrNotFound, err)
		}
		return nil, err
	}
	f.mu.Lock()
	f.in = in
	f.mu.Unlock()
	select {
	case <-f.over: // meanwhile: nobody would cut it
		if follow {
			f.drop()
			return f.stream(false)
		}
	default:
	}
	return in, nil
}

// drop forgets a stream that has ended.
func (f *follower) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.in != nil {
		_ = f.in.Close() // it has ended
		f.in = nil
	}
}

// Close ends the reading.
func (f *follower) Close() error {
	f.drop()
	return nil
}
