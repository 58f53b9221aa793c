package nomad

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/view"
)

// Logs returns what the job's attempts wrote to their standard output, one behind the
// other, from byte offset on, as far as it is written. What Nomad has rotated away or
// collected is missing.
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
	var parts []io.ReadCloser
	for _, a := range f.allocs {
		// What runs for a moment before Nomad's servers know of it is no attempt yet.
		if f.rec != nil && slices.Contains(f.rec.Ignored, a.ID) || view.TaskOf(a, f.task).Began.IsZero() {
			continue
		}
		if offset > 0 {
			size, err := d.outputSize(ctx, f.at, a.ID, f.task)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("logs of %s: %w", id, err), closeAll(parts))
			}
			if offset >= size {
				offset -= size
				continue
			}
		}
		out, err := d.c.output(ctx, f.at, a.ID, f.task, "", offset, false)
		offset = 0
		if errors.Is(err, driver.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("logs of %s: %w", id, err), closeAll(parts))
		}
		parts = append(parts, out)
	}
	readers := make([]io.Reader, len(parts))
	for i, p := range parts {
		readers[i] = p
	}
	return &joined{Reader: io.MultiReader(readers...), parts: parts}, nil
}

// joined reads several outputs as one.
type joined struct {
	io.Reader
	parts []io.ReadCloser
}

func (j *joined) Close() error { return closeAll(j.parts) }

func closeAll(parts []io.ReadCloser) error {
	var errs []error
	for _, p := range parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// output reads the standard output of a task, or a file of its allocation, from an offset on.
// It is driver.ErrNotFound where there is none yet or no more.
func (c cluster) output(ctx context.Context, w where, alloc, task, file string, offset int64, follow bool) (io.ReadCloser, error) {
	kind, v := "logs", url.Values{
		"origin": {"start"}, "offset": {strconv.FormatInt(offset, 10)}, "plain": {"true"}, "follow": {strconv.FormatBool(follow)},
		"task": {task}, "type": {"stdout"},
	}
	if file != "" {
		kind = "readat"
		v.Set("path", file)
		v.Set("limit", strconv.Itoa(1<<20))
	}
	in, err := c.api.Raw().Response("/v1/client/fs/"+kind+"/"+url.PathEscape(alloc)+"?"+v.Encode(), query(ctx, w.namespace))
	if err = asked("output of "+alloc, readFS.in(w.namespace), err); err != nil && absent(err) {
		err = fmt.Errorf("%w: %w", driver.ErrNotFound, err)
	}
	return in, err
}

// outputSize is how long the standard output of a task is.
func (d *Driver) outputSize(ctx context.Context, at where, alloc, task string) (int64, error) {
	var files []*api.AllocFileInfo
	path := "/v1/client/fs/ls/" + url.PathEscape(alloc) + "?" + url.Values{"path": {"alloc/logs"}}.Encode()
	if _, err := d.c.api.Raw().Query(path, &files, query(ctx, at.namespace)); err != nil {
		if err = asked("output of "+alloc, readFS.in(at.namespace), err); absent(err) {
			return 0, nil
		}
		return 0, err
	}
	size := int64(0)
	for _, f := range files {
		rest, ok := strings.CutPrefix(f.Name, task+".stdout.")
		if _, err := strconv.Atoi(rest); ok && err == nil {
			size += f.Size
		}
	}
	return size, nil
}

// absent reports whether there is no output, rather than that it could not be read.
func absent(err error) bool {
	if errors.Is(err, driver.ErrNotFound) {
		return true
	}
	for _, text := range []string{"not started yet", "no such file", "log entry for task", "state for allocation", "Unknown allocation"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}
