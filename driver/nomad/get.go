package nomad

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

func source(job *api.Job) []byte {
	data, err := json.MarshalIndent(map[string]*api.Job{"Job": job}, "", "  ")
	if err != nil {
		return nil
	}
	return append(data, '\n')
}

// snapshot is what was read of a job, and what the list said about it before.
type snapshot struct {
	mark string
	f    *facts
	job  driver.Job
}

// Get returns one job. Where the list of jobs says that nothing happened to it since it
// was read, it is not read again.
func (d *Driver) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	defer d.hold(id)()
	_, job, err := d.snapshot(ctx, id)
	if errors.Is(err, driver.ErrNotFound) {
		// A job that had not ended and that somebody took out of Nomad: its evaluations outlive
		// it for some hours and say that it was deregistered. Without them its end is unknown.
		r, failed := d.load(ctx, id)
		recorded, last := failed == nil && r != nil && r.Own != nil && r.Last == nil, d.peek(id).last
		if recorded || last != nil && !last.State.Ended() {
			switch at, failed := d.c.deregistered(ctx, place(id)); {
			case failed != nil || at.IsZero():
			case recorded:
				return d.cancelled(r, purged), nil
			default:
				job = last.Clone()
				job.State, job.Detail, job.Ended = driver.Cancelled, purged, at
				return job, nil
			}
		}
	}
	if err != nil {
		return driver.Job{}, fmt.Errorf("get %s: %w", id, err)
	}
	return job, nil
}

// purged is the detail of a job that was taken out of Nomad before it ended.
const purged = "it was purged"

// cancelled returns a job on record that Nomad no longer has, as cancelled.
func (d *Driver) cancelled(r *record, detail string) driver.Job {
	return driver.Job{
		ID: r.Job, Request: r.Request, Name: spec.Deref(r.Own.Name), Owner: place(r.Job).namespace, State: driver.Cancelled,
		Detail: detail, ExitCode: -1, Filename: r.Filename, Source: r.Source, Submitted: r.Submitted,
		Fingerprint: d.fingerprint(r.Own), Resources: spec.Resources(r.Own),
	}
}

// snapshot is get, or what get returned last where nothing happened since. The caller holds
// the job and changes nothing of what it gets.
func (d *Driver) snapshot(ctx context.Context, id driver.JobID) (*facts, driver.Job, error) {
	mark := d.informer.mark(id)
	if known := d.peek(id).snapshot; mark != "" && known != nil && known.mark == mark {
		return known.f, known.job.Clone(), nil
	}
	f, job, err := d.get(ctx, id)
	if err != nil {
		return nil, driver.Job{}, err
	}
	if mark != "" && (f.rec == nil || f.rec.Moving == nil && d.goes(f) == stays) {
		d.keep(id, func(c *cached) { c.snapshot = &snapshot{mark: mark, f: f, job: job.Clone()} })
	}
	return f, job, nil
}

// acted notes that something was done to a job.
func (d *Driver) acted(id driver.JobID) {
	d.keep(id, func(c *cached) { c.snapshot = nil })
	d.informer.acted.Add(1)
}

// get reads a job again and takes the steps that are the driver's own. The caller holds the job.
func (d *Driver) get(ctx context.Context, id driver.JobID) (*facts, driver.Job, error) {
	f, err := d.observe(ctx, id)
	if err != nil {
		return nil, driver.Job{}, err
	}
	if f.rec == nil {
		// Nothing is the driver's own to do.
	} else if acted, err := d.settle(ctx, f); errors.Is(err, ErrNotLeading) {
		d.cfg.Logger.Debug("only the leader takes the driver's own steps", "job", string(id), "error", err)
	} else if err != nil {
		d.cfg.Logger.Warn("the driver's own step failed; it is retried", "job", string(id), "error", err)
	} else if acted {
		d.acted(id)
		if f, err = d.observe(ctx, id); err != nil {
			return nil, driver.Job{}, err
		}
	}
	job := d.look(f)
	last := job.Clone()
	if f.rec != nil && f.rec.Own != nil {
		if f.rec.Last = nil; job.State.Ended() {
			f.rec.Last = &last
			d.clear(ctx, f)
		}
		if err := d.save(ctx, f.rec); err != nil && !errors.Is(err, ErrNotLeading) {
			return nil, driver.Job{}, err
		}
	}
	d.keep(id, func(c *cached) { c.last = &last })
	return f, job, nil
}

// all are the jobs of all namespaces, oldest first. One that the token may not list hides no
// other. Fresh: the last list does not count.
func (d *Driver) all(ctx context.Context, fresh bool) ([]listed, error) {
	var out []listed
	var denied []error
	for _, ns := range d.ns {
		l, ok := d.informer.now(ns)
		if !ok || fresh {
			var err error
			if l, err = d.informer.list(ctx, ns, 0); errors.Is(err, driver.ErrDenied) {
				denied = append(denied, err)
				continue
			} else if err != nil {
				return nil, err
			}
		}
		out = slices.AppendSeq(out, maps.Values(l.jobs))
	}
	if len(denied) == len(d.ns) {
		return nil, errors.Join(denied...)
	}
	slices.SortFunc(out, func(a, b listed) int { return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.id, b.id)) })
	return out, nil
}

// List returns the jobs that carry a stanza and those that were made or changed here,
// oldest first. Where Nomad answers, but not for one of them, that one is shown as it was
// last read, and its detail says so: the others go on.
func (d *Driver) List(ctx context.Context) ([]driver.Job, error) {
	found, err := d.all(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	var out []driver.Job
	var silent error
	for _, l := range found {
		job, err := d.Get(ctx, l.id)
		switch {
		case errors.Is(err, driver.ErrNotFound):
		case err != nil && ctx.Err() != nil:
			return nil, err
		case errors.Is(err, driver.ErrTransient), errors.Is(err, driver.ErrUnknown):
			silent = err
			out = append(out, d.unread(l, err))
		case err != nil:
			// One bad job never hides the others.
			d.cfg.Logger.Warn("a job cannot be read", "job", string(l.id), "error", err)
		default:
			out = append(out, job)
		}
	}
	if silent != nil {
		// Where Nomad answers for nothing at all, nothing says which jobs there are.
		if _, err := d.all(ctx, true); err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		d.cfg.Logger.Warn("jobs cannot be read; the others are", "error", silent)
	}
	return out, nil
}

// Stop cancels a job. What Nomad knows of it stays known.
func (d *Driver) Stop(ctx context.Context, id driver.JobID) error {
	defer d.hold(id)()
	f, job, err := d.get(ctx, id)
	if err != nil {
		return fmt.Errorf("stop %s: %w", id, err)
	}
	if job.State.Ended() || f.stopped() {
		return nil
	}
	defer d.acted(id)
	if err := d.c.stop(ctx, f.at); err != nil {
		return fmt.Errorf("stop %s: %w", id, err)
	}
	return nil
}

// Outlook says that a restart would not wait, where a dry run says that there is room.
// Nomad does not say how long one would wait that does.
func (d *Driver) Outlook(ctx context.Context, id driver.JobID) (out driver.Outlook, err error) {
	defer d.hold(id)()
	f, job, err := d.snapshot(ctx, id)
	if err != nil {
		return out, fmt.Errorf("outlook of %s: %w", id, err)
	}
	a := f.latest()
	if job.State.Ended() || a == nil || view.Over(a) {
		return out, nil
	}
	target, err := d.target(f, spec.Mark{Intent: "outlook", Cause: driver.CauseIntent})
	if err != nil {
		return out, nil //nolint:nilerr // a job that is only observed is not restarted
	}
	switch err := d.place(ctx, f.at, target); {
	case err == nil:
		out.Wait = new(time.Duration)
	case !errors.Is(err, driver.ErrDenied) && !errors.Is(err, driver.ErrNoRoom):
		return out, fmt.Errorf("outlook of %s: %w", id, err)
	}
	return out, nil
}

// Jobs that are on the list and that Nomad does not answer for.

// answersWithin is how long Nomad may take to show one job.
const answersWithin = 20 * time.Second

// unread is a job that cannot be read: as it was last read, or where it was never read as
// the list has it. Its detail says so.
func (d *Driver) unread(l listed, why error) (job driver.Job) {
	if last := d.peek(l.id).last; last != nil {
		job = last.Clone()
	} else {
		job = driver.Job{
			ID: l.id, Name: l.name, Owner: place(l.id).namespace, State: driver.Pending, ExitCode: -1,
			Submitted: time.Unix(0, l.submitted).UTC(),
		}
		switch l.status {
		case "running":
			job.State = driver.Running
		case "dead":
			job.State = driver.Lost
		}
	}
	job.Detail = "Nomad does not answer for it: " + why.Error()
	return job
}
