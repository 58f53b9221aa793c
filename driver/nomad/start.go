package nomad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// Start registers a job under its own id: the name in its file and a short hash of
// the request. Repeated it returns that job. Nomad starts a job at once, so that one that is
// to wait (Spec.NotBefore) is refused with driver.ErrUnsupported.
func (d *Driver) Start(ctx context.Context, id driver.RequestID, s driver.Spec) (driver.Job, error) {
	return d.StartWith(ctx, id, s, driver.Change{})
}

// StartWith is Start of the job with a change, as if its owner had written that.
func (d *Driver) StartWith(ctx context.Context, id driver.RequestID, s driver.Spec, c driver.Change) (driver.Job, error) {
	defer d.hold(driver.JobID("request " + string(id)))()
	job, err := d.start(ctx, id, s, c)
	if err != nil {
		return driver.Job{}, fmt.Errorf("start %s: %w", id, err)
	}
	return job, nil
}

func (d *Driver) start(ctx context.Context, id driver.RequestID, s driver.Spec, c driver.Change) (driver.Job, error) {
	for _, known := range d.which(func(r brief) bool { return r.request == id }) {
		if job, err := d.started(ctx, known); !errors.Is(err, driver.ErrNotFound) {
			return job, err
		}
	}
	if s.NotBefore.After(time.Now()) {
		return driver.Job{}, fmt.Errorf("Nomad starts a job at once: %w", driver.ErrUnsupported) //nolint:staticcheck // a name
	}
	r, at, err := d.draft(ctx, id, s, c)
	if err != nil {
		return driver.Job{}, err
	}
	if d.peek(r.Job).record != nil { // its owner has run it again since, and its record names no request any more
		if job, err := d.started(ctx, r.Job); !errors.Is(err, driver.ErrNotFound) {
			return job, err
		}
	}
	defer d.hold(r.Job)()
	if err := d.save(ctx, r); err != nil {
		return driver.Job{}, err
	}
	return d.registered(ctx, r, at)
}

// Find is the job of a request, so that it can be stopped: Nomad is asked, since a list that was
// read before does not have what was registered since. driver.ErrNotFound: there is none.
func (d *Driver) Find(ctx context.Context, id driver.RequestID) (driver.JobID, error) {
	for _, known := range d.which(func(r brief) bool { return r.request == id }) {
		_, err := d.c.job(ctx, place(known))
		if err == nil {
			return known, nil
		}
		if !errors.Is(err, driver.ErrNotFound) {
			return "", fmt.Errorf("job of request %s: %w", id, err)
		}
	}
	return "", fmt.Errorf("job of request %s: %w", id, driver.ErrNotFound)
}

// started returns the job that a request made. It registers the job where a crash came
// between its record and its registration. It is driver.ErrNotFound where the record was
// just pruned.
func (d *Driver) started(ctx context.Context, id driver.JobID) (driver.Job, error) {
	defer d.hold(id)()
	_, job, err := d.get(ctx, id)
	if err == nil {
		return job, nil
	}
	if !errors.Is(err, driver.ErrNotFound) {
		return driver.Job{}, err
	}
	r, err := d.load(ctx, id)
	switch {
	case err != nil:
		return driver.Job{}, err
	case r != nil && r.Last != nil:
		return *r.Last, nil
	case r == nil || r.Own == nil:
		return driver.Job{}, fmt.Errorf("job %s has no record any more: %w", id, driver.ErrNotFound)
	case r.Index != 0 || len(r.Attempts) > 0: // its owner purged it
		return d.cancelled(r, "Nomad has forgotten it"), nil
	}
	return d.registered(ctx, r, place(id))
}

// draft is the record of the job that a request is to make, before anything is done.
func (d *Driver) draft(ctx context.Context, id driver.RequestID, s driver.Spec, change driver.Change) (*record, where, error) {
	own := cmp.Or(s.Namespace, d.own)
	job, sub, err := parse(ctx, d.cfg.Client, own, s, change)
	if err != nil {
		return nil, where{}, err
	}
	at := where{namespace: cmp.Or(spec.Deref(job.Namespace), own), id: ownID(spec.Deref(job.ID), id)}
	job.Name = cmp.Or(job.Name, job.ID)
	if !d.sees(at.namespace) {
		return nil, where{}, fmt.Errorf("%s: namespace %s is not seen here: %w", s.Filename, at.namespace, driver.ErrInvalid)
	}
	job.ID, job.Namespace = &at.id, &at.namespace
	// Repeated it is the same run.
	warn := func(text string) {
		d.cfg.Logger.Warn("a job is started", "job", string(at.jobID()), "warning", text)
	}
	if err := once(job, driver.Digest(string(at.jobID()))[:12], warn); err != nil {
		return nil, where{}, err
	}
	if err := d.c.validate(ctx, at, job, warn); err != nil {
		return nil, where{}, err
	}
	if err := d.c.fits(ctx, job); err != nil {
		return nil, where{}, err
	}
	wrote, err := spec.Owner(job)
	return &record{
		Job: at.jobID(), Request: id, Filename: s.Filename, Source: s.Source, Variables: maps.Clone(s.Variables),
		Submitted: time.Now().UTC(), Own: wrote, Submission: sub,
	}, at, err
}

// registered registers the job of a record. The caller holds the job.
func (d *Driver) registered(ctx context.Context, r *record, at where) (driver.Job, error) {
	err := d.c.register(ctx, at, r.Own, 0, r.Submission)
	if errors.Is(err, driver.ErrConflict) {
		// It is ours where a crash came after the registration.
		there, rerr := d.c.job(ctx, at)
		if rerr != nil {
			return driver.Job{}, rerr
		}
		if err = nil; !spec.Same(there, r.Own) {
			err = fmt.Errorf("another job has the id %s: %w", at.id, driver.ErrConflict)
		}
	}
	if errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrConflict) {
		// The request made no job.
		d.keep(r.Job, func(c *cached) { c.record = nil })
		err = errors.Join(err, d.cfg.Journal.Delete(ctx, recordName(r.Job)))
	}
	if err != nil {
		return driver.Job{}, err
	}
	d.acted(r.Job)
	d.cfg.Logger.Info("registered", "job", string(r.Job), "request", string(r.Request))
	_, out, err := d.get(ctx, r.Job)
	return out, err
}

// fits refuses a job that is larger than the largest node. Where the token may not list nodes,
// Nomad makes it wait.
func (c cluster) fits(ctx context.Context, job *api.Job) error {
	_, t := spec.Main(job)
	if t == nil || t.Resources == nil {
		return nil
	}
	q := query(ctx, "")
	q.Params = map[string]string{"resources": "true"}
	nodes, _, err := c.api.Nodes().List(q)
	switch err = asked("nodes", readNodes, "", err); {
	case errors.Is(err, driver.ErrDenied):
		return nil
	case err != nil:
		return err
	}
	cores, memory := 0, int64(0)
	for _, n := range nodes {
		if n.NodeResources == nil || n.Status == api.NodeStatusDown {
			continue
		}
		cores = max(cores, cmp.Or(len(n.NodeResources.Cpu.ReservableCpuCores), int(n.NodeResources.Cpu.TotalCpuCores)))
		reserved := int64(spec.Deref(n.ReservedResources).Memory.MemoryMB) //nolint:gosec // MiB of a node
		memory = max(memory, n.NodeResources.Memory.MemoryMB-reserved)
	}
	want, mib := spec.Deref(t.Resources.Cores), int64(spec.Deref(t.Resources.MemoryMB))
	switch {
	case cores > 0 && want > cores:
		return fmt.Errorf("%d cores, and the largest node has %d: %w", want, cores, driver.ErrInvalid)
	case memory > 0 && mib > memory:
		return fmt.Errorf("%d MiB of memory, and the largest node has %d: %w", mib, memory, driver.ErrInvalid)
	}
	return nil
}
