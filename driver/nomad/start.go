package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// Start registers a job under an id of its own: the name in its file and a short hash
// of the request. Repeated it returns that job. One that is to wait (Spec.NotBefore) is
// registered with a schedule of one second, so that Nomad starts it by itself.
func (d *Driver) Start(ctx context.Context, id driver.RequestID, s driver.Spec) (driver.Job, error) {
	return d.StartWith(ctx, id, s, driver.Change{})
}

// StartWith is Start of the job with a change, as if its owner had written that.
func (d *Driver) StartWith(ctx context.Context, id driver.RequestID, s driver.Spec, c driver.Change) (driver.Job, error) {
	defer d.holdRequest(id)()
	job, err := d.start(ctx, id, s, c)
	if err != nil {
		return driver.Job{}, fmt.Errorf("start %s: %w", id, err)
	}
	return job, nil
}

func (d *Driver) start(ctx context.Context, id driver.RequestID, s driver.Spec, c driver.Change) (driver.Job, error) {
	data, err := d.cfg.Journal.Load(ctx, claimName(id))
	if err == nil {
		var c claim
		if err := json.Unmarshal(data, &c); err != nil || c.Request != id {
			return driver.Job{}, fmt.Errorf("record of the request: %q: %w", data, driver.ErrInvalid)
		}
		return d.started(ctx, c.Job)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return driver.Job{}, fmt.Errorf("record of the request: %w: %w", driver.ErrTransient, err)
	}
	r, at, err := d.draft(ctx, id, s, c)
	if err != nil {
		return driver.Job{}, err
	}
	defer d.hold(r.Job)()
	// The record first: a claim without one could not be carried out.
	if err := d.save(ctx, r); err != nil {
		return driver.Job{}, err
	}
	data, err = json.Marshal(claim{Version: recordVersion, Request: id, Job: r.Job})
	if err != nil {
		return driver.Job{}, err
	}
	if err := d.cfg.Journal.Save(ctx, claimName(id), data); err != nil {
		return driver.Job{}, fmt.Errorf("record of the request: %w: %w", driver.ErrTransient, err)
	}
	return d.registered(ctx, r, at)
}

// started returns the job that a request made, and makes it where a crash came between
// its record and its registration.
func (d *Driver) started(ctx context.Context, id driver.JobID) (driver.Job, error) {
	defer d.hold(id)()
	_, job, err := d.get(ctx, id)
	if err == nil {
		return job, nil
	}
	if last, ok := d.forgotten(ctx, id, err); ok {
		return last, nil
	}
	if !errors.Is(err, driver.ErrNotFound) {
		return driver.Job{}, err
	}
	r, lerr := d.load(ctx, id)
	switch {
	case lerr != nil:
		return driver.Job{}, lerr
	case r == nil || r.Own == nil:
		return driver.Job{}, fmt.Errorf("job %s: its record is lost: %w", id, driver.ErrUnknown)
	case r.Index != 0 || len(r.Attempts) > 0 || r.Child != "":
		// It was there, and its owner purged it.
		return d.cancelled(r, "Nomad has forgotten it"), nil
	}
	return d.registered(ctx, r, place(id))
}

// draft is the record of the job that a request is to make. Nothing was done yet.
func (d *Driver) draft(ctx context.Context, id driver.RequestID, s driver.Spec, change driver.Change) (*record, where, error) {
	job, sub, err := parse(ctx, d.cfg.Client, d.own, s)
	if err != nil {
		return nil, where{}, err
	}
	at := where{namespace: d.own, id: ownID(deref(job.ID), id)}
	if job.Name == nil {
		job.Name = job.ID
	}
	if s.Off {
		job.SetMeta(spec.OffMeta, "true")
	}
	if ns := deref(job.Namespace); ns != "" && ns != api.DefaultNamespace {
		at.namespace = ns
	}
	if !d.sees(at.namespace) {
		return nil, where{}, fmt.Errorf("%s: namespace %s is not seen here: %w", s.Filename, at.namespace, driver.ErrInvalid)
	}
	job.ID, job.Namespace = &at.id, &at.namespace
	if len(s.Env) > 0 {
		_, t := spec.Main(job)
		if t == nil {
			return nil, where{}, fmt.Errorf("%s: variables are set for one task, and the job has not one main task: %w", s.Filename, driver.ErrInvalid)
		}
		if t.Env == nil {
			t.Env = map[string]string{}
		}
		maps.Copy(t.Env, s.Env)
	}
	if !change.Empty() {
		if err := spec.Set(job, change); err != nil {
			return nil, where{}, fmt.Errorf("%s: %w", s.Filename, err)
		}
	}
	// Repeated it is the same run.
	warn := func(text string) { d.cfg.Logger.Warn("a job is started", "job", string(at.jobID()), "warning", text) }
	if err := once(job, digest(string(at.jobID()), 12), warn); err != nil {
		return nil, where{}, err
	}
	warnings, err := d.c.validate(ctx, at, job)
	if err != nil {
		return nil, where{}, err
	}
	if warnings != "" {
		warn(warnings)
	}
	if err := d.fits(ctx, job); err != nil {
		return nil, where{}, err
	}
	own, err := spec.Owner(job)
	if err != nil {
		return nil, where{}, err
	}
	r := &record{
		Job: at.jobID(), Request: id, Filename: s.Filename, Source: s.Source, Variables: maps.Clone(s.Variables),
		Submitted: time.Now().UTC(), Own: own, Submission: sub,
	}
	if r.Held = s.NotBefore.After(time.Now()); r.Held {
		if job.Periodic != nil || job.ParameterizedJob != nil {
			return nil, where{}, fmt.Errorf("%s: a periodic or parameterized job does not wait: %w", s.Filename, driver.ErrInvalid)
		}
		r.Wait = s.NotBefore
	}
	return r, at, nil
}

// registered registers the job of a record. The caller holds the job.
func (d *Driver) registered(ctx context.Context, r *record, at where) (driver.Job, error) {
	job := r.Own
	if r.Held {
		var err error
		if job, r.Wait, err = spec.Hold(r.Own, soonest(r.Wait)); err != nil {
			return driver.Job{}, err
		}
		if err := d.save(ctx, r); err != nil {
			return driver.Job{}, err
		}
	}
	err := d.c.register(ctx, at, job, 0, r.Submission)
	switch {
	case errors.Is(err, driver.ErrConflict):
		// Ours, where a crash came behind the registration.
		there, rerr := d.c.job(ctx, at)
		if rerr != nil {
			return driver.Job{}, rerr
		}
		if !spec.Same(there, r.Own) {
			return driver.Job{}, errors.Join(fmt.Errorf("another job has the id %s: %w", at.id, driver.ErrConflict), d.drop(ctx, r))
		}
	case errors.Is(err, driver.ErrInvalid), errors.Is(err, driver.ErrDenied):
		return driver.Job{}, errors.Join(err, d.drop(ctx, r))
	case err != nil:
		return driver.Job{}, err
	}
	d.acted(r.Job)
	d.cfg.Logger.Info("registered", "job", string(r.Job), "request", string(r.Request))
	_, out, err := d.get(ctx, r.Job)
	if err != nil {
		return driver.Job{}, err
	}
	return out, nil
}

// drop forgets a request that made no job.
func (d *Driver) drop(ctx context.Context, r *record) error {
	d.mu.Lock()
	delete(d.records, r.Job)
	d.mu.Unlock()
	return errors.Join(d.cfg.Journal.Delete(ctx, claimName(r.Request)), d.cfg.Journal.Delete(ctx, recordName(r.Job)))
}

// ahead is how long before it begins a held job is left alone, and how far away its
// beginning is set: a server that would take a schedule later than its one second would
// not start it.
const ahead = 2 * time.Second

// farthest bounds how far away the beginning of a held job is set.
const farthest = 5 * time.Minute

// ahead is that for a held job, twice as long each time that its time has passed and Nomad
// has not begun it: the clocks of its servers may be ahead of this one, or behind it.
func (r *record) ahead() time.Duration { return min(ahead<<min(r.Tries, 10), farthest) }

// soonest is a time for a schedule: the wanted one or the first that is far enough away.
func soonest(at time.Time) time.Time {
	if first := time.Now().Add(ahead); at.Before(first) {
		return first
	}
	return at
}

// fits refuses a job that is larger than the largest node. Where nobody may list nodes
// it is Nomad who has it wait.
func (d *Driver) fits(ctx context.Context, job *api.Job) error {
	_, t := spec.Main(job)
	if t == nil || t.Resources == nil {
		return nil
	}
	nodes, err := d.c.nodes(ctx)
	if errors.Is(err, driver.ErrDenied) {
		return nil
	}
	if err != nil {
		return err
	}
	cores, memory := 0, int64(0)
	for _, n := range nodes {
		if n.NodeResources == nil || n.Status == api.NodeStatusDown {
			continue
		}
		have, reserved := len(n.NodeResources.Cpu.ReservableCpuCores), int64(0)
		if have == 0 {
			have = int(n.NodeResources.Cpu.TotalCpuCores)
		}
		if n.ReservedResources != nil {
			reserved = int64(n.ReservedResources.Memory.MemoryMB) //nolint:gosec // MiB of a node
		}
		cores, memory = max(cores, have), max(memory, n.NodeResources.Memory.MemoryMB-reserved)
	}
	want, mib := deref(t.Resources.Cores), int64(deref(t.Resources.MemoryMB))
	switch {
	case cores > 0 && want > cores:
		return fmt.Errorf("%d cores, and the largest node has %d: %w", want, cores, driver.ErrInvalid)
	case memory > 0 && mib > memory:
		return fmt.Errorf("%d MiB of memory, and the largest node has %d: %w", mib, memory, driver.ErrInvalid)
	}
	return nil
}
