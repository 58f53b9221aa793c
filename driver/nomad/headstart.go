package nomad

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
)

// Foresee is the job that a registration would make of this one, in JSON. Nothing is
// asked and nothing is done.
func (d *Driver) Foresee(job []byte) (driver.Job, error) {
	own, at, err := d.prospect(job)
	if err != nil {
		return driver.Job{}, err
	}
	name := spec.Deref(own.Name)
	if name == "" {
		name = at.id
	}
	return driver.Job{
		ID: at.jobID(), Name: name, Owner: at.namespace, Partition: at.namespace, State: driver.Pending, ExitCode: -1,
		Resources: spec.Resources(own), Submitted: time.Now().UTC(), Filename: at.id + ".nomad.json", Source: source(own),
		Fingerprint: d.fingerprint(own), Off: own.Meta[spec.OffMeta] == "true",
	}, nil
}

func (d *Driver) prospect(source []byte) (*api.Job, where, error) {
	job, err := spec.Decode(source)
	if err != nil {
		return nil, where{}, err
	}
	at := where{namespace: spec.Deref(job.Namespace), id: spec.Deref(job.ID)}
	if at.namespace == "" {
		at.namespace = api.DefaultNamespace
	}
	switch {
	case at.id == "":
		return nil, at, fmt.Errorf("a job without an ID: %w", driver.ErrInvalid)
	case !d.sees(at.namespace):
		return nil, at, fmt.Errorf("namespace %s is not seen here: %w", at.namespace, driver.ErrInvalid)
	}
	job.Canonicalize()
	own, err := spec.Owner(job)
	if err != nil {
		return nil, at, err
	}
	if why := spec.ObservedOnly(own); why != "" {
		return nil, at, fmt.Errorf("%s: %w", why, driver.ErrUnsupported)
	}
	return own, at, nil
}

// MayBegin is the dry run of a registration of the job with a change: nil where it would
// be taken and begin at once. One that would have to wait is better off without a change
// now; it can be changed while it waits.
func (d *Driver) MayBegin(ctx context.Context, job []byte, c driver.Change) error {
	own, at, err := d.prospect(job)
	if err != nil {
		return err
	}
	switch there, err := d.c.job(ctx, at); {
	case err == nil && spec.Deref(there.Status) != "dead":
		return fmt.Errorf("a job %s lives: %w", at.id, driver.ErrConflict)
	case err == nil && there.ParentID != nil && *there.ParentID != "":
		return fmt.Errorf("%s is the child of another job: %w", at.id, driver.ErrUnsupported)
	}
	begun, err := spec.Begin(own, spec.Mark{Intent: "dry run", Cause: driver.CauseIntent, Change: c})
	if err != nil {
		return err
	}
	if c.TimeLimit > 0 {
		if err := d.knowsLimits(ctx, at.namespace); err != nil {
			return err
		}
	}
	_, err = d.place(ctx, at, begun)
	return err
}

// begunNote is what the submission of a job says that began with a change.
const begunNote = "what jobs of its kind ran best with, from its start"

// theirs is the source of a version as its owner wrote it, without what was put before
// it where he registered it with a change.
func (f *facts) theirs(sub *api.JobSubmission) *api.JobSubmission {
	if sub == nil || f.whose != begun {
		return sub
	}
	out := *sub
	out.Source = strings.TrimPrefix(sub.Source, remarks(begunNote, *f.mark))
	return &out
}
