package nomad

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

// variable reads a variable, nil where there is none.
func (c cluster) variable(ctx context.Context, w where, path string) (*api.Variable, error) {
	v, _, err := c.api.Variables().Peek(path, query(ctx, w.namespace))
	return v, asked("variable "+path, readVariable.in(w.namespace), err)
}

// write writes a variable that is still the one that was read, nil where there was none.
// Without items it is removed.
func (c cluster) write(ctx context.Context, w where, path string, items map[string]string, was *api.Variable) error {
	if err := c.mayAct(ctx); err != nil {
		return err
	}
	v := &api.Variable{Namespace: w.namespace, Path: path, Items: items}
	if was != nil {
		v.ModifyIndex = was.ModifyIndex
	}
	right := writeVariable
	var err error
	if len(items) > 0 {
		_, _, err = c.api.Variables().CheckedUpdate(v, order(ctx, w.namespace))
	} else {
		right = destroyVariable
		_, err = c.api.Variables().CheckedDelete(path, v.ModifyIndex, order(ctx, w.namespace))
	}
	if _, ok := errors.AsType[api.ErrCASConflict](err); ok {
		return fmt.Errorf("writing variable %s: %w: it was written meanwhile", path, driver.ErrConflict)
	}
	return written("writing variable "+path, right.in(w.namespace), err)
}

// restart ends a task of an allocation and starts it again in place.
func (c cluster) restart(ctx context.Context, w where, alloc, task string) error {
	if err := c.mayAct(ctx); err != nil {
		return err
	}
	_, err := c.api.Raw().Write("/v1/client/allocation/"+url.PathEscape(alloc)+"/restart", map[string]string{"TaskName": task}, nil, order(ctx, w.namespace))
	return written("restart of "+alloc, allocLifecycle.in(w.namespace), err)
}

// maxFile bounds what is read of a file that a template renders.
const maxFile = 64 << 10

// file reads a file of an allocation and when it was written, by its node's clock; the
// zero time: it is not there.
func (c cluster) file(ctx context.Context, w where, alloc, path string) ([]byte, time.Time, error) {
	q := query(ctx, w.namespace)
	q.Params = map[string]string{"path": path}
	in, err := c.api.Raw().Response("/v1/client/fs/cat/"+alloc, q)
	if err = asked("file "+path+" of "+alloc, readFS.in(w.namespace), err); err != nil {
		if absent(err) {
			return nil, time.Time{}, nil
		}
		return nil, time.Time{}, err
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile))
	if err = errors.Join(err, in.Close()); err != nil {
		return nil, time.Time{}, asked("file "+path+" of "+alloc, readFS.in(w.namespace), err)
	}
	var info api.AllocFileInfo
	_, err = c.api.Raw().Query("/v1/client/fs/stat/"+alloc, &info, q)
	if err = asked("file "+path+" of "+alloc, readFS.in(w.namespace), err); err != nil {
		return nil, time.Time{}, err
	}
	return text, info.ModTime, nil
}
