package nomad

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/nomadjson"
	"pitchpipe/driver/nomad/spec"
)

// cluster is the part of Nomad's API that the driver uses, with the driver's errors.
type cluster struct {
	api   *api.Client
	leads func(ctx context.Context) error // nil: always
}

// mayAct refuses a change where another controller leads.
func (c cluster) mayAct(ctx context.Context) error {
	if c.leads == nil {
		return nil
	}
	if err := c.leads(ctx); err != nil {
		return fmt.Errorf("%w: %w: %w", driver.ErrTransient, ErrNotLeading, err)
	}
	return nil
}

// act does what changes something, where this controller leads.
func (c cluster) act(ctx context.Context, what string, r right, namespace string, do func(*api.WriteOptions) error) error {
	if err := c.mayAct(ctx); err != nil {
		return err
	}
	return named(what, r, namespace, do(order(ctx, namespace)), driver.ErrUnknown) // it may have had its effect
}

func query(ctx context.Context, namespace string) *api.QueryOptions {
	return (&api.QueryOptions{Namespace: namespace}).WithContext(ctx)
}

func order(ctx context.Context, namespace string) *api.WriteOptions {
	return (&api.WriteOptions{Namespace: namespace}).WithContext(ctx)
}

func (c cluster) job(ctx context.Context, w where) (*api.Job, error) {
	data, err := c.registration(ctx, w)
	if err != nil {
		return nil, err
	}
	return spec.Decode(data)
}

// whole reads a job as it is registered, and names what of it is not known here.
func (c cluster) whole(ctx context.Context, w where) (job *api.Job, unknown string, err error) {
	data, err := c.registration(ctx, w)
	if err != nil {
		return nil, "", err
	}
	return spec.Read(data)
}

// allocations lists those of the present job of that id, the oldest first.
func (c cluster) allocations(ctx context.Context, w where) ([]*api.AllocationListStub, error) {
	list, _, err := c.api.Jobs().Allocations(w.id, false, query(ctx, w.namespace))
	if err != nil {
		return nil, asked("allocations of "+w.id, readJob, w.namespace, err)
	}
	slices.SortFunc(list, func(a, b *api.AllocationListStub) int {
		return cmp.Or(cmp.Compare(a.CreateIndex, b.CreateIndex), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

func (c cluster) evaluations(ctx context.Context, w where) ([]*api.Evaluation, error) {
	list, _, err := c.api.Jobs().Evaluations(w.id, query(ctx, w.namespace))
	return list, asked("evaluations of "+w.id, readJob, w.namespace, err)
}

// blocked is the evaluation of a job that waits for room, nil where none does.
func (c cluster) blocked(ctx context.Context, w where) (blocked *api.Evaluation, err error) {
	list, err := c.evaluations(ctx, w)
	for _, e := range list {
		if e.Status == "blocked" && (blocked == nil || e.CreateIndex > blocked.CreateIndex) {
			blocked = e
		}
	}
	if blocked != nil && len(blocked.FailedTGAllocs) == 0 {
		// What failed is in the evaluation that it was made for.
		for _, e := range list {
			if e.ID == blocked.PreviousEval {
				blocked.FailedTGAllocs = e.FailedTGAllocs
			}
		}
	}
	return blocked, err
}

// deregistered is when a job was taken out, where that is the last that was done to it; zero: it is not.
func (c cluster) deregistered(ctx context.Context, w where) (at time.Time, err error) {
	list, err := c.evaluations(ctx, w)
	var newest uint64
	for _, e := range list {
		if by := e.TriggeredBy; (by == "job-register" || by == "job-deregister") && e.CreateIndex >= newest {
			if newest, at = e.CreateIndex, (time.Time{}); by == "job-deregister" {
				at = time.Unix(0, e.CreateTime).UTC()
			}
		}
	}
	return at, err
}

// register replaces a job whose index is still the one that was read; 0 makes one that
// is not there. Without its own source Nomad would show that of the version before.
func (c cluster) register(ctx context.Context, w where, job *api.Job, index uint64, sub *api.JobSubmission) error {
	if sub == nil {
		sub = &api.JobSubmission{Source: string(source(job)), Format: "json"}
	}
	opts := &api.RegisterOptions{EnforceIndex: true, ModifyIndex: index, Submission: sub}
	return c.act(ctx, "registering "+w.id, registerJob, w.namespace, func(o *api.WriteOptions) error {
		_, _, err := c.api.Jobs().RegisterOpts(job, opts, o)
		return err
	})
}

// validate says what is wrong with a job, and passes on what Nomad only warns of.
func (c cluster) validate(ctx context.Context, w where, job *api.Job, warn func(string)) error {
	got, _, err := c.api.Jobs().Validate(job, order(ctx, w.namespace))
	if err != nil {
		return asked("validating "+w.id, readJob, w.namespace, err)
	}
	if text := cmp.Or(strings.Join(got.ValidationErrors, "; "), got.Error); text != "" {
		return fmt.Errorf("job %s: %w: Nomad says: %s", w.id, driver.ErrInvalid, text)
	}
	if got.Warnings != "" {
		warn("Nomad says: " + strings.Join(strings.Fields(got.Warnings), " "))
	}
	return nil
}

// stop ends a job and keeps what is known of it.
func (c cluster) stop(ctx context.Context, w where) error {
	return c.act(ctx, "stopping "+w.id, deregisterJob, w.namespace, func(o *api.WriteOptions) error {
		_, _, err := c.api.Jobs().Deregister(w.id, false, o)
		return err
	})
}

// task does something to a task of an allocation: signal or restart.
func (c cluster) task(ctx context.Context, w where, alloc, what string, in map[string]string) error {
	return c.act(ctx, what+" of "+alloc, allocLifecycle, w.namespace, func(o *api.WriteOptions) error {
		_, err := c.api.Raw().Write("/v1/client/allocation/"+url.PathEscape(alloc)+"/"+what, in, nil, o)
		return err
	})
}

// submission is the source that a version was registered with, nil where there is none.
func (c cluster) submission(ctx context.Context, w where, version uint64) *api.JobSubmission {
	sub, _, err := c.api.Jobs().Submission(w.id, int(version), query(ctx, w.namespace)) //nolint:gosec // a small number
	if err != nil {
		return nil
	}
	return sub
}

// registered is when a node's client registered last, by its server's clock in seconds; 0:
// that is not known here.
func (c cluster) registered(ctx context.Context, node string) (int64, error) {
	n, _, err := c.api.Nodes().Info(node, query(ctx, ""))
	switch err = asked("node "+node, readNodes, "", err); {
	case errors.Is(err, driver.ErrDenied), errors.Is(err, driver.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return n.StatusUpdatedAt, nil
}

// registration reads a job as it is registered, as JSON. Where Nomad would take the job's
// id for a question about another job it is the newest of its versions.
func (c cluster) registration(ctx context.Context, w where) (json.RawMessage, error) {
	what := "job " + w.id
	ask := func(path string, out any) error {
		_, err := c.api.Raw().Query("/v1/job/"+url.PathEscape(w.id)+path, out, query(ctx, w.namespace))
		return asked(what, readJob, w.namespace, err)
	}
	var data json.RawMessage
	if nomadjson.Misread(w.id) == "" {
		if err := ask("", &data); err != nil {
			return nil, err
		}
	} else {
		var all struct{ Versions []json.RawMessage }
		if err := ask("/versions", &all); err != nil {
			return nil, err
		}
		if len(all.Versions) == 0 {
			return nil, fmt.Errorf("%s: without versions: %w", what, driver.ErrNotFound)
		}
		data = all.Versions[0]
	}
	var is struct{ ID string }
	if err := json.Unmarshal(data, &is); err != nil || is.ID != w.id {
		return nil, fmt.Errorf("%s: Nomad answers with something else (a job %q, %w)", what, is.ID, driver.ErrInvalid)
	}
	return data, nil
}

// variable reads a variable, nil where there is none.
func (c cluster) variable(ctx context.Context, w where, path string) (*api.Variable, error) {
	v, _, err := c.api.Variables().Peek(path, query(ctx, w.namespace))
	return v, asked("variable "+path, readVariable, w.namespace, err)
}

// write writes a variable that is still the one that was read, nil where there was none.
// Without items it is removed.
func (c cluster) write(ctx context.Context, w where, path string, items map[string]string, was *api.Variable) error {
	v := &api.Variable{Namespace: w.namespace, Path: path, Items: items}
	if was != nil {
		v.ModifyIndex = was.ModifyIndex
	}
	right, do := writeVariable, func(o *api.WriteOptions) error {
		_, _, err := c.api.Variables().CheckedUpdate(v, o)
		return err
	}
	if len(items) == 0 {
		right, do = destroyVariable, func(o *api.WriteOptions) error {
			_, err := c.api.Variables().CheckedDelete(path, v.ModifyIndex, o)
			return err
		}
	}
	err := c.act(ctx, "writing variable "+path, right, w.namespace, do)
	if _, ok := errors.AsType[api.ErrCASConflict](err); ok {
		return fmt.Errorf("writing variable %s: %w: it was written meanwhile", path, driver.ErrConflict)
	}
	return err
}

// maxFile bounds what is read of a file that a template renders.
const maxFile = 64 << 10

// file reads a file of an allocation and when it was written, by its node's clock; the
// zero time: it is not there.
func (c cluster) file(ctx context.Context, w where, alloc, path string) ([]byte, time.Time, error) {
	var text []byte
	var info api.AllocFileInfo
	in, err := c.part(ctx, w, alloc, path, 0, maxFile)
	if err == nil {
		text, err = io.ReadAll(in)
		err = asked("file "+path+" of "+alloc, readFS, w.namespace, errors.Join(err, in.Close()))
	}
	if err == nil {
		err = c.show(ctx, w, "stat", alloc, path, &info)
	}
	if errors.Is(err, driver.ErrNotFound) {
		return nil, time.Time{}, nil
	}
	return text, info.ModTime, err
}
